// SPDX-License-Identifier: Apache-2.0
#include "perf/driver.h"

using namespace axon::perf;

int main(int argc, char** argv) {
  return PerfMain(argc, argv,
                  {.name = "gather",
                   .rooted = true,
                   .in_place = Program::InPlace::kSendIsPart,
                   .shape =
                       [](size_t count, size_t, int size) {
                         const size_t part = count / size;
                         return Shape{part, part * size, part};
                       },
                   .bus_factor = PartsFactor,
                   .call =
                       [](const Call& c) {
                         return axonGather(c.send, c.recv, c.count, c.type,
                                           c.place.root, c.comm, c.stream);
                       },
                   .expect =
                       [](const Place& place, size_t count) {
                         return place.rank == place.root
                                    ? PartOfEach(place, 0, count)
                                    : std::vector<Part>{};
                       }});
}
