// SPDX-License-Identifier: Apache-2.0
#include "transport/note.h"

#include <gtest/gtest.h>

#include <cstring>
#include <new>
#include <thread>

namespace axon {
namespace {

class NoteTest : public testing::Test {
 protected:
  NoteTest() { std::memset(memory_, 0, sizeof(memory_)); }
  alignas(64) unsigned char memory_[sizeof(Note)];
  // As in a segment: what zeroed memory holds.
  Note& note_ = *reinterpret_cast<Note*>(memory_);
};

TEST_F(NoteTest, HoldsTheLastText) {
  EXPECT_EQ(note_.Read(), "");
  note_.Write("a call of another communicator");
  EXPECT_EQ(note_.Read(), "a call of another communicator");
  note_.Write("short");
  EXPECT_EQ(note_.Read(), "short");
  note_.Write("");
  EXPECT_EQ(note_.Read(), "");
}

TEST_F(NoteTest, CutsWhatIsTooLong) {
  note_.Write(std::string(1000, 'x'));
  EXPECT_EQ(note_.Read(), std::string(127, 'x'));
}

TEST_F(NoteTest, IsNeverReadHalfWritten) {
  std::atomic<bool> end{false};
  std::thread writer([&] {
    for (int i = 0; !end.load(); ++i) {
      note_.Write(std::string(static_cast<size_t>(1 + i % 120),
                              static_cast<char>('a' + i % 26)));
    }
  });
  for (int i = 0; i < 20'000; ++i) {
    const std::string text = note_.Read();
    if (text.empty()) continue;
    ASSERT_EQ(text, std::string(text.size(), text[0]));
  }
  end.store(true);
  writer.join();
}

}  // namespace
}  // namespace axon
