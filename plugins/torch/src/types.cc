// SPDX-License-Identifier: Apache-2.0
#include "types.h"

#include <c10/util/BFloat16.h>
#include <c10/util/Exception.h>
#include <c10/util/Half.h>

#include <cmath>
#include <cstring>
#include <optional>

namespace torch_axon {
namespace {

using c10::ScalarType;
using c10d::ReduceOp;

// The library's type that has the same values, if there is one.
std::optional<axonDataType_t> SameType(ScalarType dtype) {
  switch (dtype) {
    case ScalarType::Bool:
    case ScalarType::Byte:
      return axonUint8;
    case ScalarType::Char:
      return axonInt8;
    case ScalarType::Int:
      return axonInt32;
    case ScalarType::UInt32:
      return axonUint32;
    case ScalarType::Long:
      return axonInt64;
    case ScalarType::UInt64:
      return axonUint64;
    case ScalarType::Half:
      return axonFloat16;
    case ScalarType::BFloat16:
      return axonBfloat16;
    case ScalarType::Float:
      return axonFloat32;
    case ScalarType::Double:
      return axonFloat64;
    case ScalarType::Float8_e4m3fn:
      return axonFloat8e4m3;
    case ScalarType::Float8_e5m2:
      return axonFloat8e5m2;
    default:
      return std::nullopt;
  }
}

std::optional<axonRedOp_t> SameOp(ReduceOp::RedOpType op) {
  switch (op) {
    case ReduceOp::SUM:
      return axonSum;
    case ReduceOp::AVG:
      return axonAvg;
    case ReduceOp::PRODUCT:
      return axonProd;
    case ReduceOp::MIN:
      return axonMin;
    case ReduceOp::MAX:
      return axonMax;
    case ReduceOp::BAND:
      return axonBitAnd;
    case ReduceOp::BOR:
      return axonBitOr;
    case ReduceOp::BXOR:
      return axonBitXor;
    default:
      return std::nullopt;
  }
}

// Booleans are bytes of 0 and 1: a sum is "or", a product is "and".
std::optional<axonRedOp_t> BoolOp(ReduceOp::RedOpType op) {
  switch (op) {
    case ReduceOp::SUM:
    case ReduceOp::MAX:
    case ReduceOp::BOR:
      return axonMax;
    case ReduceOp::PRODUCT:
    case ReduceOp::MIN:
    case ReduceOp::BAND:
      return axonMin;
    case ReduceOp::BXOR:
      return axonBitXor;
    default:
      return std::nullopt;
  }
}

const char* OpName(ReduceOp::RedOpType op) {
  constexpr const char* kNames[] = {"SUM", "AVG",  "PRODUCT",
                                    "MIN", "MAX",  "BAND",
                                    "BOR", "BXOR", "PREMUL_SUM"};
  return op < ReduceOp::UNUSED ? kNames[op] : "UNUSED";
}

bool IsBitwise(ReduceOp::RedOpType op) {
  return op == ReduceOp::BAND || op == ReduceOp::BOR || op == ReduceOp::BXOR;
}

bool IsLinear(ReduceOp::RedOpType op) {
  return op == ReduceOp::SUM || op == ReduceOp::AVG ||
         op == ReduceOp::PREMUL_SUM;
}

double Factor(const ReduceOp& op, ScalarType dtype) {
  const auto* given =
      dynamic_cast<const c10d::PreMulSumSupplement*>(op.supplement_.get());
  TORCH_CHECK_VALUE(given != nullptr,
                    "axon: PREMUL_SUM comes without a factor; make it with "
                    "torch.distributed._make_nccl_premul_sum");
  const double factor = given->tensor_factor.defined()
                            ? given->tensor_factor.item<double>()
                            : given->double_factor;
  TORCH_CHECK_VALUE(!c10::isIntegralType(dtype, /*includeBool=*/true) ||
                        factor == std::trunc(factor),
                    "axon: PREMUL_SUM of ", dtype,
                    " needs a whole factor, not ", factor);
  return factor;
}

template <typename T>
void Store(double value, void* scalar) {
  const T typed = static_cast<T>(value);
  std::memcpy(scalar, &typed, sizeof(typed));
}

// False where a factor cannot be given in `type`.
bool StoreScalar(double value, axonDataType_t type, void* scalar) {
  switch (type) {
    case axonInt8:
      Store<int8_t>(value, scalar);
      return true;
    case axonUint8:
      Store<uint8_t>(value, scalar);
      return true;
    case axonInt32:
      Store<int32_t>(value, scalar);
      return true;
    case axonUint32:
      Store<uint32_t>(value, scalar);
      return true;
    case axonInt64:
      Store<int64_t>(value, scalar);
      return true;
    case axonUint64:
      Store<uint64_t>(value, scalar);
      return true;
    case axonFloat16:
      Store<c10::Half>(value, scalar);
      return true;
    case axonBfloat16:
      Store<c10::BFloat16>(value, scalar);
      return true;
    case axonFloat32:
      Store<float>(value, scalar);
      return true;
    case axonFloat64:
      Store<double>(value, scalar);
      return true;
    default:
      return false;
  }
}

}  // namespace

Wire MoveWire(ScalarType dtype) {
  if (const auto same = SameType(dtype)) return {*same, 1};
  if (c10::isComplexType(dtype)) {
    return {*SameType(c10::toRealValueType(dtype)), 2};
  }
  return {axonUint8, static_cast<int64_t>(c10::elementSize(dtype))};
}

Reduction MakeReduction(ScalarType dtype, const ReduceOp& op) {
  const ReduceOp::RedOpType kind = op.op_;
  Reduction reduction{dtype, MoveWire(dtype), axonSum};
  if (dtype == ScalarType::Short || dtype == ScalarType::UInt16) {
    reduction.dtype = ScalarType::Int;
    reduction.wire = {axonInt32, 1};
  }
  const bool known = SameType(reduction.dtype).has_value();
  const bool complex = c10::isComplexType(dtype);
  const auto mapped = dtype == ScalarType::Bool ? BoolOp(kind) : SameOp(kind);
  const bool premultiplied =
      kind == ReduceOp::PREMUL_SUM && dtype != ScalarType::Bool;
  const bool allowed = (known || (complex && IsLinear(kind))) &&
                       (mapped.has_value() || premultiplied) &&
                       !(IsBitwise(kind) && c10::isFloatingType(dtype)) &&
                       !(premultiplied && c10::isFloat8Type(dtype));
  TORCH_CHECK_VALUE(allowed, "axon: ReduceOp.", OpName(kind),
                    " is not defined for ", dtype,
                    "; convert the tensor to another type first");
  if (premultiplied) {
    reduction.premultiplied = true;
    reduction.factor = Factor(op, dtype);
  } else {
    reduction.op = *mapped;
  }
  return reduction;
}

ScopedOp::ScopedOp(const Reduction& reduction, axonComm_t comm)
    : op_(reduction.op) {
  if (!reduction.premultiplied) return;
  alignas(8) unsigned char scalar[8];
  if (!StoreScalar(reduction.factor, reduction.wire.type, scalar)) {
    result_ = axonInvalidArgument;
    return;
  }
  result_ = axonRedOpCreatePreMulSum(&op_, scalar, reduction.wire.type,
                                     axonScalarHostImmediate, comm);
  if (result_ == axonSuccess) owner_ = comm;
}

ScopedOp::~ScopedOp() {
  if (owner_ != nullptr) axonRedOpDestroy(op_, owner_);
}

}  // namespace torch_axon
