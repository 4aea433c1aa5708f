#include <gtest/gtest.h>

#include <algorithm>

#include "base/random.hpp"
#include "base/text.hpp"
#include "wire/codec.hpp"

namespace trainyard::wire {
namespace {

const Instant kAt = from_milliseconds(0x0102030405);

// A message, and its bytes as in docs/formats/wire.md.
struct Golden {
  Message message;
  std::string hex;
};
const std::vector<Golden> kGoldenMessages{
    {Hello{2, {17, 2}, 1, "tok", 1},
     "01"
     "02000000"
     "1100000000000000"
     "02000000"
     "01000000"
     "03000000746f6b"
     "01000000"},
    {StateFact{3, kAt, domain::HostState::failed, "no", 137, domain::Fault::algorithm, "s", "m",
               "o", domain::StopCause::max_runtime},
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
    {Welcome{6, 7, 2},
     "05"
     "0600000000000000"
     "0700000000000000"
     "02000000"},
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
    {Activity{1s, {{3, {}, 2s, 7}}},
     "1001e80300000000000001000000030000000001d0070000000000000700000000000000"},
    {Idle{60s, true},
     "11"
     "60ea000000000000"
     "01"},
    {NextOrder{"{}", true},
     "12"
     "020000007b7d"
     "01"},
};

TEST(Codec, GoldenBytes) {
  ASSERT_EQ(kGoldenMessages.size(), std::variant_size_v<Message> - 1)
      << "add the message to kGoldenMessages and to docs/formats/wire.md; Unknown is never written";
  for (size_t i = 0; i < kGoldenMessages.size(); ++i) {
    const auto& [message, hex] = kGoldenMessages[i];
    EXPECT_EQ(message.index(), i) << "one message of each kind, in the order of the variant";
    EXPECT_EQ(to_hex(encode(message)), hex);
    const auto again = decode(*from_hex(hex));
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_EQ(to_hex(encode(*again)), hex);
  }
}

TEST(Codec, EncodesCallsAfterTheFieldsOfEarlierReleases) {
  Activity activity{1s, {{3, {}, 2s, 7}}};
  const std::string without = encode(activity);
  RankCalls calls{.rank = 3,
                  .group = 9,
                  .group_rank = 1,
                  .group_ranks = 4,
                  .completed = 812,
                  .kind = 2,
                  .bytes = 4096,
                  .label = 5,
                  .unchanged = 12s,
                  .since_beat = 1s,
                  .inside_us = 6,
                  .outside_us = 7,
                  .loading_us = 8};
  calls.links = {{2, 10, 11}};
  activity.calls = {calls};
  activity.idle = 30s;
  const std::string bytes = encode(activity);
  EXPECT_TRUE(bytes.starts_with(without)) << "an earlier server reads the fields that it knows";
  EXPECT_EQ(bytes.size(), without.size() + 4 + 89 + 20 + 8);
  const auto decoded = decode(bytes);
  ASSERT_TRUE(decoded);
  const auto* read = std::get_if<Activity>(&*decoded);
  ASSERT_TRUE(read);
  ASSERT_EQ(read->calls.size(), 1u);
  EXPECT_EQ(read->calls[0].completed, 812u);
  EXPECT_EQ(read->calls[0].unchanged, Duration(12s));
  EXPECT_EQ(read->calls[0].loading_us, 8u);
  ASSERT_EQ(read->calls[0].links.size(), 1u);
  EXPECT_EQ(read->calls[0].links[0].busy_us, 10u);
  EXPECT_EQ(read->calls[0].links[0].busy_bytes, 11u);
  EXPECT_EQ(read->idle, Duration(30s));
  EXPECT_FALSE(decode(bytes.substr(0, bytes.size() - 20))) << "truncated";
  const auto earlier = decode(without);
  ASSERT_TRUE(earlier);
  EXPECT_TRUE(std::get<Activity>(*earlier).calls.empty());
}

// The bytes of release 0.1.0; messages that are missing here are unchanged.
const std::vector<Golden>& golden_of_first_version() {
  static const std::vector<Golden> all{
      {Hello{1, {17, 2}, 1, "tok"},
       "01"
       "01000000"
       "1100000000000000"
       "02000000"
       "01000000"
       "03000000746f6b"},
      {Welcome{6, 7, 1},
       "05"
       "0600000000000000"
       "0700000000000000"},
  };
  return all;
}

TEST(Codec, EncodesAnAllocationOnlyIfItIsSet) {
  const std::string plain = to_hex(encode(Hello{2, {17, 2}, 1, "tok", 1}));
  const Hello allocated{2, {17, 2}, 1, "tok", 1, 9, 3};
  EXPECT_EQ(to_hex(encode(allocated)), plain + "0900000000000000" + "03000000");
  const auto read = decode(encode(allocated));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(std::get<Hello>(*read).allocation, 9u);
  EXPECT_EQ(std::get<Hello>(*read).served, 3u);
  const auto without = decode(*from_hex(plain));
  ASSERT_TRUE(without);
  EXPECT_EQ(std::get<Hello>(*without).allocation, 0u);
  EXPECT_EQ(std::get<Hello>(*without).served, 0u);
  // Servers of the first version close the link on fields that they do not know.
  EXPECT_EQ(encode(Hello{1, {17, 2}, 1, "tok", 1, 9, 3}), encode(Hello{1, {17, 2}, 1, "tok"}));
}

TEST(Codec, EncodesTheTimeOfAWelcomeOnlyIfItIsSet) {
  const std::string plain = to_hex(encode(Welcome{6, 7, 2}));
  const Welcome timed{6, 7, 2, kAt};
  EXPECT_EQ(to_hex(encode(timed)), plain + "0504030201000000");
  const auto read = decode(encode(timed));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(std::get<Welcome>(*read).now, kAt);
  const auto without = decode(*from_hex(plain));
  ASSERT_TRUE(without);
  EXPECT_EQ(std::get<Welcome>(*without).now, Instant{});
  EXPECT_EQ(encode(Welcome{6, 7, 1, kAt}), encode(Welcome{6, 7, 1}));
}

TEST(Codec, EncodesTheFirstVersionExactly) {
  for (const auto& [message, hex] : golden_of_first_version()) {
    EXPECT_EQ(to_hex(encode(message)), hex);
    const auto again = decode(*from_hex(hex));
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_EQ(to_hex(encode(*again)), hex);
  }
  EXPECT_EQ(std::get<Welcome>(*decode(*from_hex(golden_of_first_version()[1].hex))).version, 1u);
}

TEST(Codec, RejectsTruncatedMessagesExceptThoseOfTheFirstVersion) {
  for (const auto& each : kGoldenMessages) {
    const std::string whole = encode(each.message);
    for (size_t size = 0; size < whole.size(); ++size) {
      const bool of_first = std::ranges::any_of(golden_of_first_version(), [&](const auto& first) {
        return first.message.index() == each.message.index() && first.hex.size() == 2 * size;
      });
      EXPECT_EQ(bool(decode(whole.substr(0, size))), of_first) << each.hex << " cut at " << size;
    }
  }
}

TEST(Codec, SkipsAdditionsOfLaterVersions) {
  for (auto [message, hex] : kGoldenMessages) {
    // Fields of a later version would follow the optional ones, so these must be set.
    if (auto* fact = std::get_if<StateFact>(&message)) fact->address = "10.1.0.2";
    if (auto* hello = std::get_if<Hello>(&message)) hello->allocation = 9;
    if (auto* welcome = std::get_if<Welcome>(&message)) welcome->now = kAt;
    if (auto* activity = std::get_if<Activity>(&message)) activity->calls = {{}};
    const std::string whole = encode(message);
    const auto read = decode(whole + "more");
    ASSERT_TRUE(read) << hex << ": " << read.error().message;
    // The text of ShellData has a length, so "more" is not read as a part of it.
    EXPECT_EQ(to_hex(encode(*read)), to_hex(whole));
  }
  const auto first_unknown = uint8_t(std::variant_size_v<Message>);
  for (const uint8_t kind : {uint8_t(0), first_unknown, uint8_t(255)}) {
    const auto read = decode(std::string(1, char(kind)) + "\1\2");
    ASSERT_TRUE(read) << int(kind);
    EXPECT_EQ(std::get<Unknown>(*read).kind, kind);
  }
}

TEST(Codec, EncodesTheAddressAfterTheFieldsOfTheFirstVersion) {
  StateFact fact;
  fact.number = 1;
  fact.at = kAt;
  const std::string before = encode(fact);
  fact.address = "10.1.0.2";
  const std::string bytes = encode(fact);
  EXPECT_EQ(bytes, before + *from_hex("0800000031302e312e302e32"));
  EXPECT_EQ(std::get<StateFact>(*decode(bytes)).address, "10.1.0.2");
  EXPECT_EQ(std::get<StateFact>(*decode(before)).address, "");
}

TEST(Codec, MapsValuesOfLaterVersionsToDefaults) {
  const auto with_byte = [](const Message& message, size_t at, char value) {
    std::string bytes = encode(message);
    bytes.at(at) = value;
    return *decode(bytes);
  };
  StateFact fact;
  fact.number = 3;
  fact.fault = domain::Fault::lost;
  constexpr size_t kState = 1 + 8 + 8, kFault = kState + 1 + 4 + 1 + 1;
  EXPECT_EQ(std::get<StateFact>(with_byte(fact, kState, 9)).state, domain::HostState::placed);
  EXPECT_EQ(std::get<StateFact>(with_byte(fact, kFault, 4)).fault, domain::Fault::internal);
  EXPECT_EQ(std::get<StateFact>(with_byte(fact, encode(fact).size() - 1, 8)).stopped,
            domain::StopCause::user);
  EXPECT_EQ(std::get<Stop>(with_byte(Stop{}, 1, char(200))).cause, domain::StopCause::user);
  EXPECT_EQ(std::get<Acknowledge>(with_byte(Acknowledge{}, 1, 2)).track, Track::other);
}

TEST(Versions, ChoosesTheLatestCommonVersion) {
  const auto common = [](uint32_t latest, uint32_t oldest) {
    const auto version = common_version({latest, {1, 1}, 0, "", oldest});
    return version ? std::to_string(*version) : version.error().message;
  };
  EXPECT_EQ(common(1, kVersionOldest), "1") << "release 0.1.0";
  EXPECT_EQ(common(1, 0), "1");
  EXPECT_EQ(common(2, 1), "2");
  EXPECT_EQ(common(2, 2), "2");
  EXPECT_EQ(common(7, 2), "2");
  EXPECT_EQ(common(UINT32_MAX, 0), "2");
  EXPECT_EQ(
      common(7, 3),
      "the agent speaks versions 3 to 7 of the protocol between server and agents, and the server "
      "versions 1 to 2: start the server and its agents from releases that have one in common");
  EXPECT_NE(common(0, 0), "0");
  EXPECT_NE(common(2, 3), "2") << "an empty range of versions";
}

TEST(Versions, AgentOffersNoLaterVersionThanItsServerSupports) {
  Order order;
  order.attempt = {17, 2};
  EXPECT_EQ(hello_of(order).version, kVersion);
  order.wire_version = 1;
  order.host = 1;
  order.token = "tok";
  EXPECT_EQ(to_hex(encode(hello_of(order))), golden_of_first_version()[0].hex);
  order.wire_version = UINT32_MAX;
  EXPECT_EQ(hello_of(order).version, kVersion);
}

TEST(Codec, ErrorsNameMessageAndField) {
  const auto why = [](std::string_view hex) { return decode(*from_hex(hex)).error().message; };
  EXPECT_EQ(why(""), "a frame without a message kind");
  EXPECT_EQ(why("0600000010"), "Refused.reason is cut short");
  EXPECT_EQ(why("0701080000000000"), "Acknowledge.number is cut short");
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

TEST(Codec, DecodesOrRejectsRandomBytes) {
  SeededRandom random(1);
  for (int round = 0; round < 20'000; ++round) {
    std::string bytes = encode(kGoldenMessages[random.below(kGoldenMessages.size())].message);
    for (uint64_t flips = random.below(4); flips > 0; --flips)
      bytes[random.below(bytes.size())] = char(random.next());
    const auto message = decode(bytes);
    if (!message || std::holds_alternative<Unknown>(*message)) continue;
    const std::string known = encode(*message);
    EXPECT_EQ(encode(*decode(known)), known)
        << "a decoded message is encoded in the form of this version";
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
  order.egress_settings.name_servers = {"1.1.1.1"};
  order.file_systems = {{"fs-1", "/srv/shared"}};
  order.best_effort_isolation = true;
  order.copy_channels = true;
  order.shared_user_id = 1000;
  order.shared_group_id = 100;
  order.log_stream = "digits/algo-2-1763631900";
  order.runtime_left = 90s;
  order.stop_grace = 5s;
  order.authority = "AUTHORITY";
  order.identity = AgentIdentity{"CERTIFICATE", "KEY"};
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

// In release 0.1.0's form, except for line breaks.
constexpr const char* kOrderOfFirstRelease =
    R"({"version": 1, "attempt": "j17a1", "token": "t", "host": 1,
  "job": {"region": "us-east-1", "name": "digits"}, "job_arn": "arn:aws:sagemaker:us-east-1:1:training-job/digits",
  "account": "1", "share": {"cpus": 1.5, "memory_bytes": 1073741824, "gpus": 0}, "created": 16909060,
  "spec": {"image": "machine", "groups": [{"name": "homogeneousCluster", "instance_type": "ml.m5.large", "count": 2}]},
  "wire_address": "unix:/run/agents.sock", "api_address": "127.0.0.1:4566",
  "objects_endpoint": "http://127.0.0.1:4566", "image": {"kind": "machine"}, "outward": {"name_servers": ["1.1.1.1"]},
  "file_systems": {"fs-1": "/srv/shared"}, "variables": {}, "log_stream": "digits/algo-2-1763631900",
  "runtime_left": 90000, "stop_grace": 5000, "stalled_after_seconds": 1800, "reuse_host": false})";

TEST(OrderFile, AcceptsOrdersOfTheFirstRelease) {
  const auto order = decode_order(kOrderOfFirstRelease);
  ASSERT_TRUE(order) << order.error().message;
  EXPECT_EQ(order->wire_version, 1u);
  EXPECT_EQ(hello_of(*order).version, 1u);
  EXPECT_EQ(order->runtime_left, 90s);
  EXPECT_EQ(order->file_systems.at("fs-1"), "/srv/shared");
  EXPECT_FALSE(order->best_effort_isolation);
  EXPECT_FALSE(order->copy_channels);
  EXPECT_EQ(order->shared_user_id, 65534u);
}

TEST(OrderFile, RejectsOrdersOfOtherVersions) {
  const auto refusal = [](auto&& change) {
    Json json = *parse_json(encode_order(an_order()));
    change(json);
    const auto order = decode_order(dump(json));
    return order ? std::string("accepted") : order.error().message;
  };
  for (const int version : {0, 2})
    EXPECT_EQ(
        refusal([&](Json& o) { o["version"] = version; }),
        "the order has version " + std::to_string(version) +
            ", but this agent reads version 1; start the server and its agents from one release");
  EXPECT_EQ(refusal([](Json& o) { o.erase("version"); }), "invalid order: the version is missing");
  EXPECT_NE(refusal([](Json& o) { o["version"] = "1"; }), "accepted");
  EXPECT_EQ(refusal([](Json& o) { o["host"] = 2; }), "the order is for host 2 of 2");
  EXPECT_EQ(refusal([](Json& o) { o.erase("spec"); }), "invalid order: the spec is missing");
  EXPECT_EQ(refusal([](Json& o) { o.erase("attempt"); }), "invalid order: the attempt is missing");
  EXPECT_NE(refusal([](Json& o) { o["attempt"] = 3; }), "accepted");
  EXPECT_EQ(refusal([](Json& o) { o["of a later release"] = {{"a", 1}}; }), "accepted");
  EXPECT_FALSE(decode_order("{"));
  EXPECT_FALSE(decode_order("[]"));
}

}  // namespace
}  // namespace trainyard::wire
