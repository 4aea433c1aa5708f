#include "cluster_setup/names.hpp"

#include <gtest/gtest.h>

namespace trainyard::cluster_setup {
namespace {

TEST(Destination, IsAHostOrAUserAtAHost) {
  for (const char* good : {"ws2", "bob@ws2", "ws2.lan", "10.0.0.2", "my_alias", "a.b@c-d.e"})
    EXPECT_TRUE(check_destination(good)) << good;
}

TEST(Destination, NeverLooksLikeAnOption) {
  for (const char* bad : {"", "-oProxyCommand=sh", "bob@-x", "-bob@ws", "a b", "a;b", "$(id)",
                          "a\nb", "@ws", "bob@", "a@b@c", "ssh://ws", "w's", "ws\x01"})
    EXPECT_FALSE(check_destination(bad)) << bad;
  EXPECT_FALSE(check_destination(std::string(300, 'a')));
  EXPECT_FALSE(check_destination(std::string("ws\0x", 4)));
}

TEST(NodeName, IsPlainAndNoWordOfSlurm) {
  for (const char* good : {"ws2", "WS-2", "2"}) EXPECT_TRUE(is_node_name(good)) << good;
  for (const char* bad : {"", "default", "ALL", "localhost", "a,b", "n[1-2]", "a.b", "-a", "a\n"})
    EXPECT_FALSE(is_node_name(bad)) << bad;
  EXPECT_FALSE(is_node_name(std::string(64, 'a')));
}

TEST(Ipv4, HasFourNumbers) {
  for (const char* good : {"10.0.0.2", "255.255.255.255", "0.0.0.0"}) EXPECT_TRUE(is_ipv4(good));
  for (const char* bad : {"10.0.0", "10.0.0.256", "10.0.0.02", "a.b.c.d", "10.0.0.-1", "::1",
                          "10.0.0.2 ", "10.0.0.+2"})
    EXPECT_FALSE(is_ipv4(bad)) << bad;
}

TEST(Path, IsAbsoluteAndPlain) {
  EXPECT_TRUE(is_plain_path("/etc/slurm/slurm.conf"));
  for (const char* bad : {"etc", "/a b", "/a/../b", "/a'b", "/a\nb", ""})
    EXPECT_FALSE(is_plain_path(bad)) << bad;
}

TEST(ShellWord, KeepsEveryCharacter) {
  EXPECT_EQ(shell_word("plain"), "'plain'");
  EXPECT_EQ(shell_word("it's $(x)\n"), "'it'\\''s $(x)\n'");
  EXPECT_EQ(shell_word(""), "''");
}

}  // namespace
}  // namespace trainyard::cluster_setup
