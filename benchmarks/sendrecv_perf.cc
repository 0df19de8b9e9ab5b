// SPDX-License-Identifier: Apache-2.0
#include "perf/driver.h"

using namespace axon::perf;

namespace {

// Each rank sends to its right neighbour and receives from its left one.
axonResult_t Exchange(const Call& c) {
  const int right = (c.place.rank + 1) % c.place.size;
  const int left = (c.place.rank + c.place.size - 1) % c.place.size;
  axonResult_t result = axonGroupStart();
  if (result != axonSuccess) return result;
  result = axonSend(c.send, c.count, c.type, right, c.comm, c.stream);
  const axonResult_t received =
      axonRecv(c.recv, c.count, c.type, left, c.comm, c.stream);
  const axonResult_t ended = axonGroupEnd();
  if (result != axonSuccess) return result;
  return received != axonSuccess ? received : ended;
}

}  // namespace

int main(int argc, char** argv) {
  return PerfMain(argc, argv,
                  {.name = "sendrecv",
                   .has_algorithms = false,
                   .shape = SameShape,
                   .bus_factor = WholeFactor,
                   .call = Exchange,
                   .expect = [](const Place& place, size_t count) {
                     const int left =
                         (place.rank + place.size - 1) % place.size;
                     return std::vector<Part>{{left, 0, 0, count}};
                   }});
}
