#include <gtest/gtest.h>

#include "base/random.hpp"
#include "base/text.hpp"
#include "wire/codec.hpp"

namespace trainyard::wire {
namespace {

const Instant kAt = from_milliseconds(0x0102030405);

// One of each, with every field set; what docs/formats/wire.md shows.
struct Golden {
  Message message;
  std::string hex;
};
const std::vector<Golden>& golden() {
  static const std::vector<Golden> all{
      {Hello{1, {17, 2}, 1, "tok"},
       "01"
       "01000000"
       "1100000000000000"
       "02000000"
       "01000000"
       "03000000746f6b"},
      {StateFact{3, kAt, domain::HostState::failed, "no", 137, domain::Fault::algorithm, "s", "m", "o",
                 domain::StopCause::max_runtime},
       "02"
       "0300000000000000"
       "0504030201000000"
       "07"
       "020000006e6f"
       "01"
       "89000000"
       "01"
       "00"
       "0100000073"
       "010000006d"
       "010000006f"
       "02"},
      {LogBatch{4, {{kAt, "hi"}, {kAt, ""}}},
       "03"
       "0400000000000000"
       "02000000"
       "0504030201000000"
       "020000006869"
       "0504030201000000"
       "00000000"},
      {MetricBatch{5, {{"loss", kAt, 0.5, true}}},
       "04"
       "0500000000000000"
       "01000000"
       "040000006c6f7373"
       "0504030201000000"
       "000000000000e03f"
       "01"},
      {Welcome{6, 7},
       "05"
       "0600000000000000"
       "0700000000000000"},
      {Refused{"old"},
       "06"
       "030000006f6c64"},
      {Acknowledge{Track::data, 8},
       "07"
       "01"
       "0800000000000000"},
      {Stop{domain::StopCause::host_failed, 120s},
       "08"
       "04"
       "c0d4010000000000"},
      {Credentials{"a", "b", "c", kAt},
       "09"
       "0100000061"
       "0100000062"
       "0100000063"
       "0504030201000000"},
      {PeersDrained{{"k1", ""}},
       "0a"
       "02000000"
       "020000006b31"
       "00000000"},
      {Goodbye{}, "0b"},
      {Progress{"channel a", 5, 9, true},
       "0c"
       "090000006368616e6e656c2061"
       "0500000000000000"
       "0900000000000000"
       "01"},
      {OpenShell{7, {"ls"}, true, "xterm", 80, 24},
       "0d"
       "0700000000000000"
       "01000000"
       "020000006c73"
       "01"
       "05000000787465726d"
       "50000000"
       "18000000"},
      {ShellData{7, "\2"},
       "0e"
       "0700000000000000"
       "01000000"
       "02"},
      {MainRuns{}, "0f"},
  };
  return all;
}

TEST(Codec, GoldenBytes) {
  ASSERT_EQ(golden().size(), std::variant_size_v<Message>);
  for (size_t i = 0; i < golden().size(); ++i) {
    const auto& [message, hex] = golden()[i];
    EXPECT_EQ(message.index(), i) << "one of each, in order";
    EXPECT_EQ(to_hex(encode(message)), hex);
    const auto again = decode(*from_hex(hex));
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_EQ(to_hex(encode(*again)), hex);
  }
}

TEST(Codec, EveryCutAndEveryTrailingByteIsRefused) {
  for (const auto& [message, hex] : golden()) {
    const std::string whole = encode(message);
    for (size_t size = 0; size < whole.size(); ++size)
      EXPECT_FALSE(decode(whole.substr(0, size))) << hex << " cut at " << size;
    EXPECT_FALSE(decode(whole + '\0')) << hex;
  }
}

TEST(Codec, FaultsNameMessageAndField) {
  const auto why = [](std::string_view hex) { return decode(*from_hex(hex)).error().message; };
  EXPECT_EQ(why(""), "a frame without a message kind");
  EXPECT_EQ(why("00"), "unknown message kind 0");
  EXPECT_EQ(why("10"), "unknown message kind 16");
  EXPECT_EQ(why("0600000010"), "Refused.reason is cut short");
  EXPECT_EQ(why("07020800000000000000"), "Acknowledge.track has no value 2");
  EXPECT_EQ(why("0b00"), "Goodbye has 1 bytes too many");
  EXPECT_EQ(why("0affffffff"), "PeersDrained.staged_models is cut short");
  EXPECT_EQ(why("04"
                "0500000000000000"
                "01000000"
                "00000000"
                "0504030201000000"
                "000000000000e03f"
                "02"),
            "MetricBatch.points.of_host is neither 0 nor 1");
  EXPECT_EQ(decode(std::string(kFrameBytesMax + 1, '\x01')).error().kind, Kind::corrupt);
}

TEST(Codec, RandomBytesNeverCrash) {
  SeededRandom random(1);
  for (int round = 0; round < 20'000; ++round) {
    std::string bytes = encode(golden()[random.below(golden().size())].message);
    for (uint64_t flips = random.below(4); flips > 0; --flips)
      bytes[random.below(bytes.size())] = char(random.next());
    if (const auto message = decode(bytes)) {
      EXPECT_EQ(encode(*message), bytes);
    }
  }
}

Order an_order() {
  Order order;
  order.attempt = {17, 1};
  order.token = "t";
  order.host = 1;
  order.job = {"us-east-1", "digits"};
  order.job_arn = "arn:aws:sagemaker:us-east-1:1:training-job/digits";
  order.account = "1";
  order.spec.image = "machine";
  order.spec.groups = {{"homogeneousCluster", "ml.m5.large", 2}};
  order.share = {1.5, 1 << 30, 0};
  order.created = kAt;
  order.wire_address = "unix:/run/agents.sock";
  order.api_address = "127.0.0.1:4566";
  order.objects_endpoint = "http://127.0.0.1:4566";
  order.image = {domain::Image::Kind::machine, "", {{"/a", "/b"}}, {"train"}, {{"A", "1"}}};
  order.outward.name_servers = {"1.1.1.1"};
  order.file_systems = {{"fs-1", "/srv/shared"}};
  order.best_effort_isolation = true;
  order.shared_user_id = 1000;
  order.shared_group_id = 100;
  order.log_stream = "digits/algo-2-1763631900";
  order.runtime_left = 90s;
  order.stop_grace = 5s;
  return order;
}

TEST(OrderFile, RoundTrips) {
  const std::string text = encode_order(an_order());
  const auto again = decode_order(text);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(encode_order(*again), text);
  EXPECT_EQ(again->spec.hosts(), 2u);
  EXPECT_EQ(again->runtime_left, 90s);
  EXPECT_EQ(again->stop_grace, 5s);
}

TEST(OrderFile, RefusesWhatItCannotObey) {
  const auto refusal = [](auto&& change) {
    Json json = *parse_json(encode_order(an_order()));
    change(json);
    const auto order = decode_order(dump(json));
    return order ? std::string("accepted") : order.error().message;
  };
  EXPECT_EQ(refusal([](Json& o) { o["version"] = 2; }), "the order is of version 2; this agent knows 1");
  EXPECT_EQ(refusal([](Json& o) { o["host"] = 2; }), "the order is for host 2 of 2");
  EXPECT_EQ(refusal([](Json& o) { o.erase("spec"); }), "the order has no spec");
  EXPECT_EQ(refusal([](Json& o) { o.erase("attempt"); }), "the order has no attempt");
  EXPECT_NE(refusal([](Json& o) { o["attempt"] = 3; }), "accepted");
  EXPECT_FALSE(decode_order("{"));
  EXPECT_FALSE(decode_order("[]"));
}

}  // namespace
}  // namespace trainyard::wire
