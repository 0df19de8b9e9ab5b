# SPDX-License-Identifier: Apache-2.0
# What `cmake --install` puts where: headers, libraries, benchmark programs and
# tools, a CMake package (find_package(axon) -> axon::axon) and axon.pc.
include(CMakePackageConfigHelpers)
set(AXON_CMAKE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/axon)

install(DIRECTORY include/axon DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        FILES_MATCHING PATTERN "*.h")
install(TARGETS axon EXPORT axon-targets
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})

file(RELATIVE_PATH AXON_BIN_TO_LIB
     /${CMAKE_INSTALL_BINDIR} /${CMAKE_INSTALL_LIBDIR})
# The programs that users run: <collective>_perf and axon-<tool>.
foreach(folder benchmarks tools)
  if(NOT IS_DIRECTORY ${PROJECT_BINARY_DIR}/${folder})
    continue()
  endif()
  get_property(targets DIRECTORY ${folder} PROPERTY BUILDSYSTEM_TARGETS)
  list(FILTER targets INCLUDE REGEX "_perf$|^axon[-_]")
  foreach(target IN LISTS targets)
    get_target_property(type ${target} TYPE)
    if(type STREQUAL "EXECUTABLE")
      set_target_properties(${target} PROPERTIES
        INSTALL_RPATH "$ORIGIN/${AXON_BIN_TO_LIB}")
      install(TARGETS ${target} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
    endif()
  endforeach()
endforeach()

install(EXPORT axon-targets NAMESPACE axon:: DESTINATION ${AXON_CMAKE_DIR})
configure_package_config_file(cmake/axon-config.cmake.in
  ${PROJECT_BINARY_DIR}/axon-config.cmake
  INSTALL_DESTINATION ${AXON_CMAKE_DIR})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/axon-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/axon-config.cmake
              ${PROJECT_BINARY_DIR}/axon-config-version.cmake
        DESTINATION ${AXON_CMAKE_DIR})

# axon.pc finds its own prefix, so that an installed tree can be moved.
file(RELATIVE_PATH AXON_PC_TO_PREFIX
     /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" AXON_PC_TO_PREFIX "${AXON_PC_TO_PREFIX}")

# axon_install_pc(<name> <description> <modules that it requires> <flags>)
function(axon_install_pc AXON_PC_NAME AXON_PC_DESCRIPTION AXON_PC_REQUIRES
         AXON_PC_CFLAGS)
  configure_file(cmake/axon.pc.in ${PROJECT_BINARY_DIR}/${AXON_PC_NAME}.pc
    @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/${AXON_PC_NAME}.pc
          DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endfunction()

# axon_install_mpi(<flavour> <pkg-config module> <macro that drops its C++ API>)
function(axon_install_mpi flavour module skip_cxx)
  if(NOT TARGET axon_mpi_${flavour})
    return()
  endif()
  set_target_properties(axon_mpi_${flavour} PROPERTIES INSTALL_RPATH "$ORIGIN")
  install(TARGETS axon_mpi_${flavour}
          LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
  axon_install_pc(axon_mpi_${flavour} "Axon in programs of ${module}"
    "axon ${module}" -D${skip_cxx})
endfunction()

axon_install_pc(axon "Collective communication for host memory" "" "")
axon_install_mpi(openmpi ompi-c OMPI_SKIP_MPICXX)
axon_install_mpi(mpich mpich MPICH_SKIP_MPICXX)
