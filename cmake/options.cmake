# SPDX-License-Identifier: Apache-2.0
# Warnings and sanitizers of every target of the project, as one interface
# library.
add_library(axon_options INTERFACE)
target_compile_options(axon_options INTERFACE -Wall -Wextra -Wpedantic)
if(AXON_WERROR)
  target_compile_options(axon_options INTERFACE -Werror)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  target_compile_options(axon_options INTERFACE -Wthread-safety)
endif()
if(AXON_SANITIZE STREQUAL "address")
  set(AXON_SANITIZE_FLAGS -fsanitize=address,undefined
    # the library has no type information
    -fno-sanitize=vptr
      -fno-sanitize-recover=undefined -fno-omit-frame-pointer)
elseif(AXON_SANITIZE STREQUAL "thread")
  set(AXON_SANITIZE_FLAGS -fsanitize=thread -fno-omit-frame-pointer)
elseif(AXON_SANITIZE)
  message(FATAL_ERROR "AXON_SANITIZE is address, thread or empty, not "
                      "'${AXON_SANITIZE}'")
endif()
if(AXON_SANITIZE)
  target_compile_options(axon_options INTERFACE ${AXON_SANITIZE_FLAGS})
  target_link_options(axon_options INTERFACE ${AXON_SANITIZE_FLAGS})
endif()
