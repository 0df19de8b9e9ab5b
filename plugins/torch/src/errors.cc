// SPDX-License-Identifier: Apache-2.0
#include "errors.h"

#include <c10/util/Exception.h>
#include <c10/util/StringUtil.h>

namespace torch_axon {

std::exception_ptr MakeError(axonResult_t result, const Origin& origin,
                             const std::string& detail) {
  std::string text =
      c10::str("axon ", origin.op, " failed on rank ", origin.rank, " of ",
               origin.size, " (group '", origin.group, "'");
  if (origin.sequence != 0) text += c10::str(", seq ", origin.sequence);
  text += "): ";
  if (result == axonTimeout) {
    text += c10::str("Timed out waiting ", origin.timeout.count(), "ms: ");
  }
  text += axonGetErrorString(result);
  if (!detail.empty()) text += ": " + detail;
  const c10::SourceLocation where{__func__, __FILE__,
                                  static_cast<uint32_t>(__LINE__)};
  if (result == axonSystemError) {
    return std::make_exception_ptr(c10::DistNetworkError(where, text));
  }
  return std::make_exception_ptr(c10::DistBackendError(where, text));
}

void Check(axonResult_t result, const Origin& origin) {
  if (result == axonSuccess) return;
  std::rethrow_exception(MakeError(result, origin, axonGetLastError(nullptr)));
}

}  // namespace torch_axon
