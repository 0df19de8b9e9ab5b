// SPDX-License-Identifier: Apache-2.0
// What tests must know of the sanitizer they are built with.
#pragma once

namespace axon {

// AddressSanitizer keeps freed memory for a while, so that the memory of a
// process grows whatever it frees; and it looks for leaks at an orderly exit,
// which finds what the threads of its parent held in a child of fork().
#ifdef __SANITIZE_ADDRESS__
constexpr bool kAddressSanitizer = true;
#else
constexpr bool kAddressSanitizer = false;
#endif

}  // namespace axon
