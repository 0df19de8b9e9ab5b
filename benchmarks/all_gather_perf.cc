// SPDX-License-Identifier: Apache-2.0
#include "perf/driver.h"

using namespace axon::perf;

int main(int argc, char** argv) {
  return PerfMain(
      argc, argv,
      {.name = "all_gather",
       .in_place = Program::InPlace::kSendIsPart,
       .shape =
           [](size_t count, size_t element_size, int size) {
             const size_t part = AlignedPart(count, element_size, size);
             return Shape{part, part * size, part};
           },
       .bus_factor = PartsFactor,
       .call =
           [](const Call& c) {
             return axonAllGather(c.send, c.recv, c.count, c.type, c.comm,
                                  c.stream);
           },
       .expect = [](const Place& place,
                    size_t count) { return PartOfEach(place, 0, count); }});
}
