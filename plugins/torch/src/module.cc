// SPDX-License-Identifier: Apache-2.0
// The Python module torch_axon._C: the backend, its options, the library's
// version, and the hook that ends everything before the interpreter goes. The
// long calls let go of Python's lock.
#include <torch/csrc/python_headers.h>

#include <pybind11/chrono.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <torch/csrc/utils/pybind.h>

#include <chrono>
#include <thread>

#include "allocator.h"
#include "completions.h"
#include "gil.h"
#include "process_group.h"

namespace py = pybind11;

namespace torch_axon {
namespace {

template <typename T>
using Ptr = c10::intrusive_ptr<T>;
using Free = py::call_guard<py::gil_scoped_release>;
using std::chrono::milliseconds;

// At exit: how long queued calls may still take, and then callbacks.
constexpr milliseconds kDrainLimit{2000};
constexpr milliseconds kStopLimit{5000};
constexpr milliseconds kReturnLimit{1000};
// From the end of a call back into Python.
constexpr milliseconds kUnwindTime{50};

Ptr<Options> MakeOptions(const std::string& backend, milliseconds timeout) {
  return c10::make_intrusive<Options>(backend, timeout);
}

// The arguments that torch gives to its own backends.
Ptr<ProcessGroupAxon> MakePlain(const Ptr<c10d::Store>& store, int rank,
                                int size, milliseconds timeout) {
  return c10::make_intrusive<ProcessGroupAxon>(
      store, rank, size, c10::make_intrusive<Options>("axon", timeout));
}

// Other threads whose calls end here must be back in Python before it goes.
void LetCallersReturn() {
  if (ReleaseGil::UnderWay() == 0) return;
  const auto end = std::chrono::steady_clock::now() + kReturnLimit;
  while (ReleaseGil::UnderWay() != 0 &&
         std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(milliseconds(1));
  }
}

// Called without Python's lock, which callbacks and callers need to end.
void ShutdownAll() {
  const bool busy = ReleaseGil::UnderWay() != 0;
  Communicator::ShutdownAll(kDrainLimit);
  Completions::Get().Stop(kStopLimit);
  LetCallersReturn();
  if (busy) std::this_thread::sleep_for(kUnwindTime);
}

py::dict MemoryStats() {
  const MappedPool::Stats stats = MappedPool::Get().stats();
  py::dict result;
  result["used_bytes"] = stats.used;
  result["kept_bytes"] = stats.kept;
  result["held_bytes"] = stats.held;
  result["reserved"] = stats.reserved;
  result["refused"] = stats.refused;
  return result;
}

int Version() {
  int version = 0;
  axonGetVersion(&version);
  return version;
}

}  // namespace

PYBIND11_MODULE(_C, m) {
  // torch's own classes are the bases below.
  py::module_::import("torch._C._distributed_c10d");

  py::class_<Options, c10d::Backend::Options, Ptr<Options>>(m, "Options")
      .def(py::init(&MakeOptions), py::arg("backend") = "axon",
           py::arg("timeout") = milliseconds(kBackendDefaultTimeout));

  py::class_<ProcessGroupAxon, c10d::Backend, Ptr<ProcessGroupAxon>>(
      m, "ProcessGroupAxon")
      .def(py::init<const Ptr<c10d::Store>&, int, int, Ptr<Options>>(),
           py::arg("store"), py::arg("rank"), py::arg("size"),
           py::arg("options"), Free())
      .def(py::init(&MakePlain), py::arg("store"), py::arg("rank"),
           py::arg("size"),
           py::arg("timeout") = milliseconds(kBackendDefaultTimeout), Free())
      .def_property_readonly("options", &ProcessGroupAxon::options)
      .def("get_error", &ProcessGroupAxon::getError, Free());

  m.def("minimum_mapped_bytes", &MinimumMappedBytes);
  m.def("set_minimum_mapped_bytes", &SetMinimumMappedBytes, Free());
  m.def("most_kept_bytes", [] { return MappedPool::Get().most_kept(); });
  m.def(
      "set_most_kept_bytes",
      [](size_t bytes) { MappedPool::Get().SetMostKept(bytes); }, Free());
  m.def("memory_stats", &MemoryStats);
  m.def("is_mapped", &IsMapped);
  m.def("shutdown_all", &ShutdownAll, Free());
  m.def("version", &Version);
}

}  // namespace torch_axon
