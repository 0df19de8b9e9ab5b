// SPDX-License-Identifier: Apache-2.0
// What tests must know of the sanitizer they are built with.
#pragma once

namespace axon {

// AddressSanitizer looks for leaks at an orderly exit, which finds what the
// threads of its parent held in a child of fork().
#ifdef __SANITIZE_ADDRESS__
constexpr bool kAddressSanitizer = true;
#else
constexpr bool kAddressSanitizer = false;
#endif

// Sanitizers keep freed memory, or what they know of it, for a while: the
// memory of a process grows whatever it frees.
#ifdef __SANITIZE_THREAD__
constexpr bool kMemoryGrows = true;
#else
constexpr bool kMemoryGrows = kAddressSanitizer;
#endif

}  // namespace axon
