// SPDX-License-Identifier: Apache-2.0
// What one call needs beside its arguments: the tensors that must stay alive,
// the staged copies that must be written back, the outputs that its Work shows.
// Made on the caller's stack, then owned by the call's Work; one thread at a
// time.
#pragma once

#include <ATen/core/Tensor.h>

#include <chrono>
#include <utility>
#include <vector>

#include <torch/csrc/distributed/c10d/Types.hpp>
#include <torch/csrc/distributed/c10d/Work.hpp>

namespace torch_axon {

class Call {
 public:
  Call(const char* name, c10d::OpType type, std::chrono::milliseconds timeout,
       bool async)
      : name(name), type(type), timeout(timeout), async(async) {}

  const char* name;  // "all_reduce"; a literal
  c10d::OpType type;
  std::chrono::milliseconds timeout;  // kUnsetTimeout: the group's
  bool async;
  std::vector<at::Tensor> outputs;  // the result of the Work

  // A dense block of `dtype` with the elements of `tensor` in order: the tensor
  // itself where it is one already, else a copy. In is read only; Out starts
  // with any content; what the library writes to Out and InOut reaches `tensor`
  // in WriteBack.
  at::Tensor In(const at::Tensor& tensor, c10::ScalarType dtype);
  at::Tensor In(const at::Tensor& tensor);
  at::Tensor Out(const at::Tensor& tensor, c10::ScalarType dtype);
  at::Tensor Out(const at::Tensor& tensor);
  at::Tensor InOut(const at::Tensor& tensor, c10::ScalarType dtype);
  at::Tensor InOut(const at::Tensor& tensor);

  // As In, but always apart from the memory of `other`, with which it may
  // overlap only where `in_place` points.
  at::Tensor InApart(const at::Tensor& tensor, c10::ScalarType dtype,
                     const at::Tensor& other, const void* in_place);

  // A new dense block of `count` elements, kept with the call.
  at::Tensor Block(int64_t count, c10::ScalarType dtype);
  // After the call, `count` elements of `block` from `first` go to `tensor`.
  void CopyOut(const at::Tensor& block, int64_t first,
               const at::Tensor& tensor);
  // Now, `tensor` goes to `block` from element `first`.
  static void CopyIn(const at::Tensor& tensor, const at::Tensor& block,
                     int64_t first);

  // Room for a message's tag, which travels as kTagWords of int64 ahead of it:
  // filled with `tag`, or, for a receiver, compared with it in WriteBack.
  static constexpr int64_t kTagWords = 3;
  int64_t* AddTag(int64_t tag, bool compare);

  // Takes over all that `other` keeps; a batch is one call with many messages.
  void Join(Call other);

  // The library is done: compares tags, writes staged results back. Throws
  // where a tag differs. Any thread.
  void WriteBack();

 private:
  at::Tensor Stage(const at::Tensor& tensor, c10::ScalarType dtype, bool read,
                   bool write);

  std::vector<at::Tensor> kept_;
  std::vector<std::pair<at::Tensor, at::Tensor>> copies_;  // to, from
  std::vector<std::pair<at::Tensor, int64_t>> tags_;       // received, expected
};

// Throws ValueError unless `tensor` is a dense tensor in host memory.
void CheckTensor(const char* op, const at::Tensor& tensor);
void CheckTensors(const char* op, const std::vector<at::Tensor>& tensors);
// The only tensor of a list that must hold exactly one.
at::Tensor& Single(const char* op, std::vector<at::Tensor>& tensors);
// Throws ValueError unless both hold the same type.
void CheckSameType(const char* op, const at::Tensor& a, const at::Tensor& b);

}  // namespace torch_axon
