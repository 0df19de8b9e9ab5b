// SPDX-License-Identifier: Apache-2.0
#include "perf/driver.h"

using namespace axon::perf;

int main(int argc, char** argv) {
  return PerfMain(argc, argv,
                  {.name = "alltoall",
                   .shape =
                       [](size_t count, size_t, int size) {
                         const size_t part = count / size;
                         return Shape{part * size, part * size, part};
                       },
                   .bus_factor = PartsFactor,
                   .call =
                       [](const Call& c) {
                         return axonAlltoAll(c.send, c.recv, c.count, c.type,
                                             c.comm, c.stream);
                       },
                   .expect =
                       [](const Place& place, size_t count) {
                         return PartOfEach(place, place.rank * count, count);
                       }});
}
