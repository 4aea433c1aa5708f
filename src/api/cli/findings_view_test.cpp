#include "cli/findings_view.hpp"

#include <gtest/gtest.h>

#include "cli/table.hpp"

namespace trainyard::cli {
namespace {

using State = Finding::State;

const std::vector<Finding> kFindings = {
    {State::ok, "OCI runtime", "crun version 1.8.1", ""},
    {State::limited, "egress",
     "jobs have no access to the internet, because slirp4netns is not installed and /dev/net/tun "
     "cannot be opened by this user",
     "install it: apt install slirp4netns"},
    {State::missing, "a-name-that-is-longer-than-its-column", "text", "remedy"}};

std::string at(int columns, bool colours = false) {
  return findings_text({.colours = colours, .live = true, .unicode = true, .columns = columns},
                       kFindings);
}

TEST(Findings, FitEveryTerminal) {
  for (const int columns : {60, 80, 120, 200}) {
    for (const bool colours : {false, true})
      for (const auto& line : wrap(at(columns, colours), 0)) {
        EXPECT_LE(width_of(line), columns) << line;
        EXPECT_FALSE(line.ends_with(' ')) << line;
      }
    for (const char* word : {"slirp4netns", "/dev/net/tun", "internet,"})
      EXPECT_NE(at(columns).find(word), std::string::npos) << word << " at " << columns;
  }
}

TEST(Findings, PutTextsBelowNamesAt60Columns) {
  EXPECT_EQ(at(60),
            "ok       OCI runtime\n"
            "         crun version 1.8.1\n"
            "limited  egress\n"
            "         jobs have no access to the internet, because\n"
            "         slirp4netns is not installed and /dev/net/tun\n"
            "         cannot be opened by this user\n"
            "         install it: apt install slirp4netns\n"
            "missing  a-name-that-is-longer-than-its-column\n"
            "         text\n"
            "         remedy\n");
}

TEST(Findings, WrapTextsAt80Columns) {
  EXPECT_EQ(at(80),
            "ok       OCI runtime            crun version 1.8.1\n"
            "limited  egress                 jobs have no access to the internet, because\n"
            "                                slirp4netns is not installed and /dev/net/tun\n"
            "                                cannot be opened by this user\n"
            "                                install it: apt install slirp4netns\n"
            "missing  a-name-that-is-longer-than-its-column\n"
            "                                text\n"
            "                                remedy\n");
}

TEST(Findings, KeepATextOnOneLineWithoutATerminal) {
  EXPECT_EQ(at(0),
            "ok       OCI runtime            crun version 1.8.1\n"
            "limited  egress                 jobs have no access to the internet, because "
            "slirp4netns is not installed and /dev/net/tun cannot be opened by this user\n"
            "                                install it: apt install slirp4netns\n"
            "missing  a-name-that-is-longer-than-its-column text\n"
            "                                remedy\n");
}

}  // namespace
}  // namespace trainyard::cli
