// SPDX-License-Identifier: Apache-2.0
#include "perf/driver.h"

using namespace axon::perf;

int main(int argc, char** argv) {
  return PerfMain(
      argc, argv,
      {.name = "reduce_scatter",
       .reduces = true,
       .in_place = Program::InPlace::kRecvIsPart,
       .shape =
           [](size_t count, size_t element_size, int size) {
             const size_t part = AlignedPart(count, element_size, size);
             return Shape{part * size, part, part};
           },
       .bus_factor = PartsFactor,
       .call =
           [](const Call& c) {
             return axonReduceScatter(c.send, c.recv, c.count, c.type, c.op,
                                      c.comm, c.stream);
           },
       .expect =
           [](const Place& place, size_t count) {
             return std::vector<Part>{
                 {Pattern::kReduced, place.rank * count, 0, count}};
           }});
}
