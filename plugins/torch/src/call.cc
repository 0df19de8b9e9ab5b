// SPDX-License-Identifier: Apache-2.0
#include "call.h"

#include <ATen/Functions.h>
#include <c10/core/GradMode.h>
#include <c10/core/InferenceMode.h>
#include <c10/util/Exception.h>

#include <iterator>
#include <string>

namespace torch_axon {
namespace {

// Begins what travels ahead of a message with a tag.
constexpr int64_t kTagMark = 0x6178'6f6e'2d74'6167;  // "axon-tag"

bool IsDense(const at::Tensor& tensor, c10::ScalarType dtype) {
  return tensor.scalar_type() == dtype && tensor.is_contiguous() &&
         !tensor.is_conj() && !tensor.is_neg();
}

bool Overlap(const at::Tensor& a, const at::Tensor& b) {
  const auto* first = static_cast<const char*>(a.const_data_ptr());
  const auto* second = static_cast<const char*>(b.const_data_ptr());
  return first < second + b.nbytes() && second < first + a.nbytes();
}

}  // namespace

at::Tensor Call::Stage(const at::Tensor& tensor, c10::ScalarType dtype,
                       bool read, bool write) {
  if (IsDense(tensor, dtype)) {
    kept_.push_back(tensor);
    return tensor;
  }
  at::Tensor block = Block(tensor.numel(), dtype);
  if (read) CopyIn(tensor, block, 0);
  if (write) CopyOut(block, 0, tensor);
  return block;
}

at::Tensor Call::In(const at::Tensor& tensor, c10::ScalarType dtype) {
  return Stage(tensor, dtype, /*read=*/true, /*write=*/false);
}
at::Tensor Call::In(const at::Tensor& tensor) {
  return In(tensor, tensor.scalar_type());
}
at::Tensor Call::Out(const at::Tensor& tensor, c10::ScalarType dtype) {
  return Stage(tensor, dtype, /*read=*/false, /*write=*/true);
}
at::Tensor Call::Out(const at::Tensor& tensor) {
  return Out(tensor, tensor.scalar_type());
}
at::Tensor Call::InOut(const at::Tensor& tensor, c10::ScalarType dtype) {
  return Stage(tensor, dtype, /*read=*/true, /*write=*/true);
}
at::Tensor Call::InOut(const at::Tensor& tensor) {
  return InOut(tensor, tensor.scalar_type());
}

at::Tensor Call::InApart(const at::Tensor& tensor, c10::ScalarType dtype,
                         const at::Tensor& other, const void* in_place) {
  at::Tensor block = In(tensor, dtype);
  if (block.const_data_ptr() == in_place || !Overlap(block, other)) {
    return block;
  }
  at::Tensor copy = Block(tensor.numel(), dtype);
  CopyIn(tensor, copy, 0);
  return copy;
}

at::Tensor Call::Block(int64_t count, c10::ScalarType dtype) {
  at::Tensor block = at::empty({count}, at::TensorOptions().dtype(dtype));
  kept_.push_back(block);
  return block;
}

void Call::CopyOut(const at::Tensor& block, int64_t first,
                   const at::Tensor& tensor) {
  c10::NoGradGuard no_grad;
  copies_.emplace_back(
      tensor, block.narrow(0, first, tensor.numel()).view(tensor.sizes()));
}

void Call::CopyIn(const at::Tensor& tensor, const at::Tensor& block,
                  int64_t first) {
  c10::NoGradGuard no_grad;
  block.narrow(0, first, tensor.numel()).view(tensor.sizes()).copy_(tensor);
}

int64_t* Call::AddTag(int64_t tag, bool compare) {
  at::Tensor block = Block(kTagWords, c10::ScalarType::Long);
  int64_t* words = block.mutable_data_ptr<int64_t>();
  words[0] = kTagMark;
  words[1] = tag;
  words[2] = ~tag;
  if (compare) {
    words[0] = 0;
    tags_.emplace_back(block, tag);
  }
  return words;
}

void Call::Join(Call other) {
  const auto append = [](auto& to, auto& from) {
    to.insert(to.end(), std::make_move_iterator(from.begin()),
              std::make_move_iterator(from.end()));
  };
  append(outputs, other.outputs);
  append(kept_, other.kept_);
  append(copies_, other.copies_);
  append(tags_, other.tags_);
}

void Call::WriteBack() {
  for (const auto& [block, tag] : tags_) {
    const int64_t* words = block.const_data_ptr<int64_t>();
    TORCH_CHECK_WITH(DistBackendError, words[0] == kTagMark && words[1] == tag,
                     "axon recv: waited for tag ", tag, " and got ",
                     words[0] == kTagMark ? c10::str("tag ", words[1])
                                          : std::string("no tag"),
                     "; receive from a rank in the order in which it sends");
  }
  if (copies_.empty()) return;
  // Results are written from whichever thread ends the call: no gradients, and
  // tensors made in inference mode stay writable.
  c10::NoGradGuard no_grad;
  c10::InferenceMode inference;
  for (auto& [to, from] : copies_) to.copy_(from);
}

void CheckTensor(const char* op, const at::Tensor& tensor) {
  TORCH_CHECK_VALUE(tensor.defined(), "axon ", op, ": a tensor is undefined");
  TORCH_CHECK_VALUE(tensor.device().is_cpu(), "axon ", op,
                    ": works on host memory, not on ", tensor.device(),
                    "; move the tensor to the CPU");
  TORCH_CHECK_VALUE(tensor.layout() == c10::kStrided, "axon ", op,
                    ": works on dense tensors, not on layout ", tensor.layout(),
                    "; convert it with to_dense()");
}

void CheckTensors(const char* op, const std::vector<at::Tensor>& tensors) {
  for (const at::Tensor& tensor : tensors) CheckTensor(op, tensor);
}

at::Tensor& Single(const char* op, std::vector<at::Tensor>& tensors) {
  TORCH_CHECK_VALUE(tensors.size() == 1, "axon ", op,
                    ": takes one tensor, not ", tensors.size());
  CheckTensor(op, tensors[0]);
  return tensors[0];
}

void CheckSameType(const char* op, const at::Tensor& a, const at::Tensor& b) {
  TORCH_CHECK_VALUE(a.scalar_type() == b.scalar_type(), "axon ", op,
                    ": input and output differ in type: ", a.scalar_type(),
                    " and ", b.scalar_type());
}

}  // namespace torch_axon
