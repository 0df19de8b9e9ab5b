// SPDX-License-Identifier: Apache-2.0
#include "perf/driver.h"

using namespace axon::perf;

int main(int argc, char** argv) {
  return PerfMain(argc, argv,
                  {.name = "reduce",
                   .reduces = true,
                   .rooted = true,
                   .in_place = Program::InPlace::kSame,
                   .shape = SameShape,
                   .bus_factor = WholeFactor,
                   .call =
                       [](const Call& c) {
                         return axonReduce(c.send, c.recv, c.count, c.type,
                                           c.op, c.place.root, c.comm,
                                           c.stream);
                       },
                   .expect =
                       [](const Place& place, size_t count) {
                         std::vector<Part> parts;
                         if (place.rank == place.root) {
                           parts.push_back({Pattern::kReduced, 0, 0, count});
                         }
                         return parts;
                       }});
}
