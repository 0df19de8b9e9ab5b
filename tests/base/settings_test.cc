// SPDX-License-Identifier: Apache-2.0
#include "base/settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"

namespace axon {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A folder that stands for HOME and is removed with the test.
class SettingsTest : public ::testing::Test {
 protected:
  SettingsTest() {
    std::string path = ::testing::TempDir() + "axon_settings_XXXXXX";
    home_ = mkdtemp(path.data());
  }
  ~SettingsTest() override { std::filesystem::remove_all(home_); }

  std::string Write(const std::string& name, const std::string& text) {
    const std::string path = home_ + "/" + name;
    std::ofstream(path) << text;
    return path;
  }
  absl::StatusOr<Settings> Read(Environment environment) {
    environment.emplace_back("HOME", home_);
    warnings_.clear();
    return ReadSettings(environment, &warnings_);
  }
  std::string Error(Environment environment) {
    const auto settings = Read(std::move(environment));
    EXPECT_EQ(settings.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(settings.status().message());
  }

  std::string home_;
  std::vector<std::string> warnings_;
};

TEST_F(SettingsTest, Defaults) {
  const auto s = Read({});
  ASSERT_TRUE(s.ok()) << s.status();
  EXPECT_EQ(s->log, "warn");
  EXPECT_EQ(s->timeout_ms, 600000);
  EXPECT_EQ(s->init_timeout_ms, 120000);
  EXPECT_EQ(s->rank, -1);
  EXPECT_EQ(s->size, -1);
  EXPECT_EQ(s->comm_id, "");
  EXPECT_EQ(s->shm, "auto");
  EXPECT_EQ(s->shm_dir, "/dev/shm");
  EXPECT_EQ(s->arena_size, 0);
  EXPECT_EQ(s->outbox_size, 2 << 20);
  EXPECT_EQ(s->channel_size, 256 << 10);
  EXPECT_EQ(s->mapped_min, 16 << 10);
  EXPECT_EQ(s->spin, -1);
  EXPECT_FALSE(s->check);
  EXPECT_EQ(s->conf_file, "");
  EXPECT_THAT(warnings_, IsEmpty());
}

TEST_F(SettingsTest, EnvironmentOfEveryKind) {
  const auto s = Read({{"AXON_LOG", "debug"},
                       {"AXON_TIMEOUT", "0"},
                       {"AXON_RANK", "3"},
                       {"AXON_OUTBOX_SIZE", "1m"},
                       {"AXON_ARENA_SIZE", "3G"},
                       {"AXON_MAPPED_MIN", "100"},
                       {"AXON_CHECK", "yes"},
                       {"AXON_HOST_ID", "left half"}});
  ASSERT_TRUE(s.ok()) << s.status();
  EXPECT_EQ(s->log, "debug");
  EXPECT_EQ(s->timeout_ms, 0);
  EXPECT_EQ(s->rank, 3);
  EXPECT_EQ(s->outbox_size, 1 << 20);
  EXPECT_EQ(s->arena_size, int64_t{3} << 30);
  EXPECT_EQ(s->mapped_min, 100);
  EXPECT_TRUE(s->check);
  EXPECT_EQ(s->host_id, "left half");
}

TEST_F(SettingsTest, EmptyValueIsAbsent) {
  Write(".axon.conf", "AXON_TIMEOUT=5\n");
  const auto s = Read({{"AXON_TIMEOUT", ""}, {"AXON_SPIN", ""}});
  ASSERT_TRUE(s.ok()) << s.status();
  EXPECT_EQ(s->timeout_ms, 5);
  EXPECT_EQ(s->spin, -1);
}

TEST_F(SettingsTest, ErrorsNameVariableValueAndRange) {
  EXPECT_EQ(Error({{"AXON_LOG", "loud"}}),
            "AXON_LOG='loud' is not allowed; it takes none, error, warn, "
            "info, debug");
  EXPECT_THAT(Error({{"AXON_TIMEOUT", "-1"}}),
              AllOf(HasSubstr("AXON_TIMEOUT='-1'"), HasSubstr("0 to ")));
  EXPECT_EQ(Error({{"AXON_OUTBOX_SIZE", "100K"}}),
            "AXON_OUTBOX_SIZE='100K' is not allowed; it takes 256K to 64M, a "
            "multiple of 64K");
  EXPECT_EQ(Error({{"AXON_ARENA_SIZE", "1K"}}),
            "AXON_ARENA_SIZE='1K' is not allowed; it takes 0 to 65536G, a "
            "multiple of 64K");
  EXPECT_THAT(Error({{"AXON_CHECK", "2"}}), HasSubstr("0 or 1"));
}

TEST_F(SettingsTest, RefusesWhatIsNotExactlyANumber) {
  for (const char* value : {"1KB", "K", "-1K", "1 K", "1.5M", "0x10", "1T",
                            "99999999999G", "9223372036854775808", "+"}) {
    EXPECT_THAT(Error({{"AXON_MAPPED_MIN", value}}), HasSubstr(value));
  }
  for (const char* value : {"5s", "1K", "1e3", "99999999999999999999"}) {
    EXPECT_THAT(Error({{"AXON_TIMEOUT", value}}), HasSubstr(value));
  }
  // In steps of 64 KiB, and not beyond either end.
  for (const char* value : {"192K", "65M", "300K", "4194305"}) {
    EXPECT_THAT(Error({{"AXON_OUTBOX_SIZE", value}}), HasSubstr(value));
  }
}

TEST_F(SettingsTest, UnknownNamesAreReportedWithTheNearest) {
  const auto s = Read({{"AXON_TIMOUT", "7"}, {"AXON_SOCKET_IF", "eth0"}});
  ASSERT_TRUE(s.ok()) << s.status();
  EXPECT_THAT(
      warnings_,
      ElementsAre("unknown setting AXON_TIMOUT is ignored; did you mean "
                  "AXON_TIMEOUT?",
                  AllOf(HasSubstr("AXON_SOCKET_IF "), HasSubstr("ignored"))));
  EXPECT_TRUE(ReadSettings({{"AXON_TIMOUT", "7"}}, nullptr).ok());
}

TEST_F(SettingsTest, FileInHome) {
  Write(".axon.conf",
        "# a comment\n\n  AXON_TIMEOUT = 10 \nAXON_LOG=info\n"
        "AXON_COMM_SECRET=a=b#c\nAXON_LOG=error\nAXON_LOGG=x\n");
  const auto s = Read({{"AXON_TIMEOUT", "20"}});
  ASSERT_TRUE(s.ok()) << s.status();
  EXPECT_EQ(s->timeout_ms, 20);  // the environment wins
  EXPECT_EQ(s->log, "error");    // the later line wins
  EXPECT_EQ(s->comm_secret, "a=b#c");
  EXPECT_EQ(s->conf_file, home_ + "/.axon.conf");
  EXPECT_THAT(warnings_, ElementsAre(AllOf(
                             HasSubstr("AXON_LOGG"), HasSubstr(".axon.conf:7"),
                             HasSubstr("did you mean AXON_LOG?"))));
}

TEST_F(SettingsTest, NamedFileWinsOverHome) {
  Write(".axon.conf", "AXON_SPIN=1\nAXON_TIMEOUT=1\n");
  const std::string named = Write("named.conf", "AXON_SPIN=2\n");
  const auto s = Read({{"AXON_CONF_FILE", named}});
  ASSERT_TRUE(s.ok()) << s.status();
  EXPECT_EQ(s->spin, 2);
  EXPECT_EQ(s->timeout_ms, 600000);
  EXPECT_EQ(s->conf_file, named);
}

TEST_F(SettingsTest, FileErrorsNameFileAndLine) {
  const std::string bad = Write("bad", "AXON_SPIN=1\nAXON_TIMEOUT\n");
  EXPECT_THAT(Error({{"AXON_CONF_FILE", bad}}),
              AllOf(HasSubstr(bad + ":2"), HasSubstr("NAME=value")));
  const std::string range = Write("range", "\nAXON_SPIN=-2\n");
  EXPECT_THAT(Error({{"AXON_CONF_FILE", range}}),
              AllOf(HasSubstr("AXON_SPIN='-2'"), HasSubstr(range + ":2")));
  const std::string nested = Write("nested", "AXON_CONF_FILE=/x\n");
  EXPECT_THAT(Error({{"AXON_CONF_FILE", nested}}), HasSubstr(nested + ":1"));
  EXPECT_THAT(Error({{"AXON_CONF_FILE", home_ + "/absent"}}),
              AllOf(HasSubstr("/absent'"), HasSubstr("No such file")));
  EXPECT_THAT(Error({{"AXON_CONF_FILE", home_}}),
              AllOf(HasSubstr("'" + home_ + "' cannot be read"),
                    HasSubstr("Is a directory")));
}

TEST_F(SettingsTest, DigestHoldsWhatMustAgreeAndNothingElse) {
  const auto a = Read({}), b = Read({{"AXON_TIMEOUT", "9"}}),
             c = Read({{"AXON_OUTBOX_SIZE", "8M"}});
  ASSERT_TRUE(a.ok() && b.ok() && c.ok());
  EXPECT_EQ(SettingsDigest(*a), SettingsDigest(*b));
  EXPECT_NE(SettingsDigest(*a), SettingsDigest(*c));
  EXPECT_THAT(SettingsDigest(*c), HasSubstr("AXON_OUTBOX_SIZE=8388608"));
}

TEST(ProcessEnvironmentTest, HoldsAxonVariablesAndHome) {
  setenv("AXON_SPIN", "12=3", 1);
  setenv("OTHER", "1", 1);
  bool spin = false;
  for (const auto& [name, value] : ProcessEnvironment()) {
    EXPECT_TRUE(name == "HOME" || name.rfind("AXON_", 0) == 0) << name;
    if (name == "AXON_SPIN") spin = value == "12=3";
  }
  EXPECT_TRUE(spin);
  unsetenv("AXON_SPIN");
  unsetenv("OTHER");
}

TEST(SettingsMarkdownTest, PageInDocsIsUpToDate) {
  const std::string path = AXON_SOURCE_DIR "/docs/settings.md";
  if (getenv("AXON_WRITE_DOCS")) std::ofstream(path) << SettingsMarkdown();
  std::stringstream page;
  page << std::ifstream(path).rdbuf();
  EXPECT_EQ(page.str(), SettingsMarkdown())
      << path << " is out of date: run this test with AXON_WRITE_DOCS=1";
  for (const SettingRow& row : SettingRows()) {
    EXPECT_THAT(page.str(), HasSubstr(absl::StrCat("| `", row.name, "` |")));
  }
}

}  // namespace
}  // namespace axon
