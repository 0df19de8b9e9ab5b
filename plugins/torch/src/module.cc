// SPDX-License-Identifier: Apache-2.0
// The Python module torch_axon._C: the backend, its options, the library's
// version, and the hook that ends everything before the interpreter goes. The
// long calls let go of Python's lock.
#include <torch/csrc/python_headers.h>

#include <pybind11/chrono.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <torch/csrc/utils/pybind.h>

#include "completions.h"
#include "process_group.h"

namespace py = pybind11;

namespace torch_axon {
namespace {

template <typename T>
using Ptr = c10::intrusive_ptr<T>;
using Free = py::call_guard<py::gil_scoped_release>;
using std::chrono::milliseconds;

constexpr milliseconds kStopLimit{5000};

Ptr<Options> MakeOptions(const std::string& backend, milliseconds timeout) {
  return c10::make_intrusive<Options>(backend, timeout);
}

// The arguments that torch gives to its own backends.
Ptr<ProcessGroupAxon> MakePlain(const Ptr<c10d::Store>& store, int rank,
                                int size, milliseconds timeout) {
  return c10::make_intrusive<ProcessGroupAxon>(
      store, rank, size, c10::make_intrusive<Options>("axon", timeout));
}

void ShutdownAll() {
  Communicator::ShutdownAll();
  Completions::Get().Stop(kStopLimit);
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
      .def("get_error", &ProcessGroupAxon::getError, Free());

  m.def("shutdown_all", &ShutdownAll, Free());
  m.def("version", &Version);
}

}  // namespace torch_axon
