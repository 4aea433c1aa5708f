#include "entry/frames.hpp"

#include <gtest/gtest.h>

#include "base/text.hpp"
#include "entry/sockets.hpp"

namespace trainyard::entry {
namespace {

const std::vector<Message>& all_messages() {
  static const std::vector<Message> messages = {Challenge{1, "0123456789abcdef"},
                                                Join{"fedcba9876543210", "algo-2", "proof"},
                                                Go{},
                                                Done{},
                                                Failed{3, 139, "killed"},
                                                End{1, "algo-2", "ValueError"},
                                                Run{7, "orted -mca x y"},
                                                Ended{7, 0},
                                                RunOn{"algo-2", "orted"},
                                                Rank{-1}};
  return messages;
}

TEST(Frames, DecodeAsTheyWereEncoded) {
  ASSERT_EQ(all_messages().size(), std::variant_size_v<Message>);
  for (const auto& message : all_messages()) {
    const auto read = decode(encode(message));
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(encode(*read), encode(message));
    EXPECT_EQ(read->index(), message.index());
  }
}

// The bytes of docs/formats/gang.md.
TEST(Frames, GoldenBytes) {
  EXPECT_EQ(to_hex(Sealer().seal(Go{})), "0100000003");
  EXPECT_EQ(to_hex(Sealer().seal(Failed{3, 7, "no"})),
            "0f000000"
            "05"
            "03000000"
            "07000000"
            "020000006e6f");
  Sealer sealer("key", kToLeader);
  EXPECT_EQ(to_hex(sealer.seal(Done{})),
            "0100000004"
            "35ce6969729d60034ec825683d9ef4b5");
}

TEST(Frames, RejectsTruncatedOrTooLongFrames) {
  for (const auto& message : all_messages()) {
    const std::string whole = encode(message);
    for (size_t bytes = 0; bytes < whole.size(); ++bytes)
      EXPECT_FALSE(decode(whole.substr(0, bytes)));
    EXPECT_FALSE(decode(whole + "x"));
  }
  EXPECT_FALSE(decode(std::string(1, '\0')));
  EXPECT_FALSE(decode("\x7f"));
}

// Forwards a stream byte by byte, and returns the number of messages before an error.
int opened(const std::string& stream, const std::string& key) {
  Opener opener;
  opener.expect_seals(key, kToLeader);
  int messages = 0;
  for (const char byte : stream) {
    opener.add({&byte, 1});
    const auto message = opener.next();
    if (!message) return -1 - messages;
    messages += message->has_value();
  }
  return messages;
}

TEST(Frames, SealsCoverPositionAndDirection) {
  Sealer sealer("key", kToLeader);
  const std::string first = sealer.seal(Go{}), second = sealer.seal(Done{});
  EXPECT_EQ(opened(first + second, "key"), 2);
  EXPECT_EQ(opened(first + second, "other"), -1);
  EXPECT_EQ(opened(second, "key"), -1) << "out of order";
  EXPECT_EQ(opened(first + first, "key"), -2) << "repeated";
  EXPECT_EQ(opened(Sealer("key", kFromLeader).seal(Go{}), "key"), -1) << "reflected";
  std::string changed = first;
  changed[4] = 4;
  EXPECT_EQ(opened(changed, "key"), -1);
}

TEST(Frames, DeclaredLengthsAreChecked) {
  Opener opener;
  opener.add(std::string("\xff\xff\xff\x7f", 4));
  EXPECT_FALSE(opener.next());
}

TEST(Frames, ProofsAreValidForOneHostAndOneChallenge) {
  const Join join{"n", "algo-2", ""};
  const auto proof = proof_of_host("secret", "challenge", join);
  EXPECT_NE(proof, proof_of_host("secret", "another", join));
  EXPECT_NE(proof, proof_of_host("secret", "challenge", {"n", "algo-3", ""}));
  EXPECT_NE(proof, proof_of_host("other", "challenge", join));
  EXPECT_NE(session_key("secret", "a", "b"), proof);
}

TEST(Sockets, FindAddressesInAHostsFile) {
  const char* hosts =
      "127.0.0.1 localhost\n# 1.1.1.1 algo-2\n10.0.0.2\talgo-1 one # algo-2\n10.0.0.3 algo-2\n";
  EXPECT_EQ(address_of(hosts, "algo-1"), "10.0.0.2");
  EXPECT_EQ(address_of(hosts, "algo-2"), "10.0.0.3");
  EXPECT_EQ(address_of(hosts, "one"), "10.0.0.2");
  EXPECT_EQ(address_of(hosts, "algo-3"), "");
  EXPECT_EQ(address_of("", "x"), "");
}

}  // namespace
}  // namespace trainyard::entry
