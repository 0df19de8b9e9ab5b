// SPDX-License-Identifier: Apache-2.0
#include "engine/waiter.h"

#include <sched.h>



namespace axon {

void Waiter::Yield() { sched_yield(); }

}  // namespace axon
