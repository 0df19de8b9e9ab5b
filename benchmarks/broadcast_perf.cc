// SPDX-License-Identifier: Apache-2.0
#include "perf/driver.h"

using namespace axon::perf;

int main(int argc, char** argv) {
  return PerfMain(argc, argv,
                  {.name = "broadcast",
                   .rooted = true,
                   .in_place = Program::InPlace::kSame,
                   .shape = SameShape,
                   .bus_factor = WholeFactor,
                   .call =
                       [](const Call& c) {
                         return axonBroadcast(c.send, c.recv, c.count, c.type,
                                              c.place.root, c.comm, c.stream);
                       },
                   .expect =
                       [](const Place& place, size_t count) {
                         return std::vector<Part>{{place.root, 0, 0, count}};
                       }});
}
