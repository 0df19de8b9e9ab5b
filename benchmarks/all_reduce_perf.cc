// SPDX-License-Identifier: Apache-2.0
#include "perf/driver.h"

using namespace axon::perf;

int main(int argc, char** argv) {
  return PerfMain(
      argc, argv,
      {.name = "all_reduce",
       .reduces = true,
       .in_place = Program::InPlace::kSame,
       .shape = SameShape,
       .bus_factor = [](int size) { return 2 * PartsFactor(size); },
       .call =
           [](const Call& c) {
             return axonAllReduce(c.send, c.recv, c.count, c.type, c.op, c.comm,
                                  c.stream);
           },
       .expect =
           [](const Place&, size_t count) {
             return std::vector<Part>{{Pattern::kReduced, 0, 0, count}};
           }});
}
