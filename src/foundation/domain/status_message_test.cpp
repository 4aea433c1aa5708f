#include "domain/status_message.hpp"

#include <gtest/gtest.h>

namespace trainyard::domain {

TEST(StatusMessage, ANoteIsASeparateSentence) {
  EXPECT_EQ(with_note("Training", "each host was scaled"), "Training. each host was scaled");
  EXPECT_EQ(with_note("It is done.", "a note"), "It is done. a note");
  EXPECT_EQ(with_note("", "a note"), "a note");
  EXPECT_EQ(with_note("Training", ""), "Training");
}

TEST(StatusMessage, ANoteCanBeRemovedAgain) {
  for (const std::string message : {"", "It is done.", "Stop!"})
    EXPECT_EQ(without_note(with_note(message, "a note"), "a note"), message);
  EXPECT_EQ(without_note("It is done.", "a note"), "It is done.");
  EXPECT_EQ(without_note("It is done.", ""), "It is done.");
}

}  // namespace trainyard::domain
