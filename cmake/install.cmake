# SPDX-License-Identifier: Apache-2.0
# What `cmake --install` puts where: headers, libraries, a CMake package and a
# pkg-config file.
