// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/bootstrap.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "bootstrap/rendezvous.h"
#include "tests/bootstrap/processes.h"

namespace axon {
namespace {

using ::testing::Each;

BootstrapOptions Options(int64_t timeout_ms = 20000) {
  BootstrapOptions options;
  options.timeout_ms = timeout_ms;
  options.version = 100;
  options.digest = "A=1 B=2";
  return options;
}

// Joins, exchanges texts of unequal length twice, meets at a barrier; returns
// what was gathered or the error.
std::string Exchange(const UniqueId& id, int rank, int nranks,
                     const BootstrapOptions& options) {
  auto bootstrap = Bootstrap::Join(id, rank, nranks, options);
  if (!bootstrap.ok()) return bootstrap.status().ToString();
  std::string result;
  for (int round = 0; round < 2; ++round) {
    const auto parts =
        (*bootstrap)->AllGather(std::string(static_cast<size_t>(rank), 'a'));
    if (!parts.ok()) return parts.status().ToString();
    for (const std::string& part : *parts) {
      absl::StrAppend(&result, part.size(), ",");
    }
  }
  const absl::Status status = (*bootstrap)->Barrier();
  return status.ok() ? result : status.ToString();
}

std::string Expected(int nranks) {
  std::string once;
  for (int i = 0; i < nranks; ++i) absl::StrAppend(&once, i, ",");
  return once + once;
}

class BootstrapSizes : public ::testing::TestWithParam<int> {};

TEST_P(BootstrapSizes, ThreadsMeetAndExchange) {
  Rendezvous rendezvous;
  const auto id = rendezvous.Open({});
  ASSERT_TRUE(id.ok()) << id.status();
  const int n = GetParam();
  const auto texts = RunThreads(
      n, [&](int rank) { return Exchange(*id, rank, n, Options()); });
  EXPECT_THAT(texts, Each(Expected(n)));
}

INSTANTIATE_TEST_SUITE_P(Ranks, BootstrapSizes,
                         ::testing::Values(1, 2, 3, 4, 5, 8, 13, 16, 64));

}  // namespace
}  // namespace axon
