// SPDX-License-Identifier: Apache-2.0
#include "perf/driver.h"

using namespace axon::perf;

int main(int argc, char** argv) {
  return PerfMain(argc, argv,
                  {.name = "scatter",
                   .rooted = true,
                   .in_place = Program::InPlace::kRecvIsPart,
                   .shape =
                       [](size_t count, size_t, int size) {
                         const size_t part = count / size;
                         return Shape{part * size, part, part};
                       },
                   .bus_factor = PartsFactor,
                   .call =
                       [](const Call& c) {
                         return axonScatter(c.send, c.recv, c.count, c.type,
                                            c.place.root, c.comm, c.stream);
                       },
                   .expect =
                       [](const Place& place, size_t count) {
                         return std::vector<Part>{
                             {place.root, place.rank * count, 0, count}};
                       }});
}
