#include "agent/report/uplink.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/thread_safety.hpp"
#include "os/machine_clock.hpp"
#include "os/machine_files.hpp"
#include "os/temporary_directory.hpp"
#include "wire/codec.hpp"

namespace trainyard::agent {
namespace {

using domain::HostState;

// The server's end: acknowledges facts, as far as a test orders it.
class Server {
 public:
  explicit Server(std::string address) : address_(std::move(address)) { open(); }

  void open() {
    net::LinkEvents events;
    events.opened = [this](const auto& link) { note([&] { link_ = link; }); };
    events.frame = [this](const auto& link, const std::string& frame) {
      receive_message(link, *wire::decode(frame));
    };
    events.closed = [](const auto&, const Error&) {};
    auto listener = net::listen_links(address_, std::move(events));
    ASSERT_TRUE(listener) << listener.error().message;
    listener_ = std::move(*listener);
  }
  void close() { listener_.reset(); }
  void say(const wire::Message& message) { send(wire::encode(message)); }
  void send(std::string frame) {
    std::shared_ptr<net::Link> link;
    note([&] { link = link_; });
    link->send(std::move(frame));
  }
  template <class Condition>
  bool wait(Condition condition) {
    MutexLock lock(mutex_);
    return changed_.wait_for(lock, 60s, condition);
  }
  template <class Change>
  void note(Change change) {
    {
      const MutexLock lock(mutex_);
      change();
    }
    changed_.notify_all();
  }

  // Used in note and wait, which hold the mutex.
  std::vector<uint64_t> states, data;
  uint64_t state_acknowledged = 0, data_acknowledged = 0;
  bool acknowledges_data = true, refuses = false;
  int hellos = 0;
  std::vector<std::string> order;  // the order in which Idle and facts were received
  std::vector<Instant> times;      // of facts
  uint32_t version = 1;
  Instant now = {};

 private:
  void receive_message(const std::shared_ptr<net::Link>& link, const wire::Message& message) {
    note([&] {
      const auto acknowledge = [&](wire::Track track, uint64_t number) {
        link->send(wire::encode(wire::Acknowledge{track, number}));
      };
      if (std::holds_alternative<wire::Hello>(message)) {
        ++hellos;
        if (refuses) return link->send(wire::encode(wire::Refused{"old"}));
        return link->send(
            wire::encode(wire::Welcome{state_acknowledged, data_acknowledged, version, now}));
      }
      if (std::holds_alternative<wire::Idle>(message)) return order.emplace_back("idle"), void();
      if (const auto* fact = std::get_if<wire::StateFact>(&message)) {
        order.push_back(std::string(to_string(fact->state)));
        times.push_back(fact->at);
        if (fact->number == state_acknowledged + 1) states.push_back(++state_acknowledged);
        return acknowledge(wire::Track::state, state_acknowledged);
      }
      const auto number = std::visit(
          [](const auto& each) -> uint64_t {
            if constexpr (requires { each.number; }) return each.number;
            return 0;
          },
          message);
      data.push_back(number);
      if (!acknowledges_data) return;
      data_acknowledged = std::max(data_acknowledged, number);
      acknowledge(wire::Track::data, data_acknowledged);
    });
  }

  const std::string address_;
  Mutex mutex_;
  ConditionVariable changed_;
  std::shared_ptr<net::Link> link_;
  std::unique_ptr<net::LinkListener> listener_;
};

constexpr Instant kIssued{Duration{1'763'631'900'000}};  // the time of the order

class UplinkTest : public testing::Test {
 protected:
  UplinkTest() { start_uplink(); }
  void start_uplink() {
    uplink_ = std::make_unique<Uplink>(
        wire::Hello{wire::kVersion, {7, 1}, 0, "t"}, *spool_, presence_,
        [this](net::LinkEvents events) { return net::connect_link(address_, std::move(events)); },
        clock_, random_,
        [this](wire::Message message) {
          server_.note([&] { delivered_.push_back(std::move(message)); });
        },
        kIssued);
    uplink_->start();
  }
  ~UplinkTest() override { uplink_->stop(); }
  static wire::StateFact fact(HostState state) {
    wire::StateFact fact;
    fact.state = state;
    return fact;
  }
  static std::vector<wire::LogLine> line(std::string text) { return {{{}, std::move(text)}}; }

  os::TemporaryDirectory directory_;
  const std::string address_ = "unix:" + directory_.path() + "/wire";
  os::MachineClock clock_;
  os::MachineRandom random_;
  Presence presence_;
  os::MachineFiles files_;
  std::unique_ptr<Spool> spool_ =
      *open_spool(files_, directory_.path() + "/spool", clock_, presence_);
  Server server_{address_};
  std::vector<wire::Message> delivered_;
  std::unique_ptr<Uplink> uplink_;
};

TEST_F(UplinkTest, FactsArriveOnceAndInOrder) {
  uplink_->state(fact(HostState::preparing));
  uplink_->lines(line("hello"));
  uplink_->state(fact(HostState::running));
  EXPECT_TRUE(uplink_->wait_acknowledged(60s));
  EXPECT_TRUE(server_.wait([&] {
    return server_.states == std::vector<uint64_t>{1, 2} &&
           server_.data == std::vector<uint64_t>{1};
  }));
}

TEST_F(UplinkTest, FactsHaveTheTimeOfTheServerAfterALateStart) {
  ASSERT_TRUE(server_.wait([&] { return server_.hellos > 0; }));
  uplink_->state(fact(HostState::preparing));
  ASSERT_TRUE(uplink_->wait_acknowledged(60s));
  EXPECT_LT(server_.times.at(0), kIssued + 1h) << "the server did not say its time";
  uplink_->stop();
  server_.note([&] { server_.now = kIssued + 2h, server_.version = 2; });
  start_uplink();
  ASSERT_TRUE(server_.wait([&] { return server_.hellos > 1; }));
  uplink_->state(fact(HostState::downloading));
  ASSERT_TRUE(uplink_->wait_acknowledged(60s));
  uplink_->state(fact(HostState::running));
  ASSERT_TRUE(uplink_->wait_acknowledged(60s));
  EXPECT_GE(server_.times.at(2), kIssued + 2h);
  EXPECT_LT(server_.times.at(2), kIssued + 3h);
  // A later time does not move the clock again.
  server_.note([&] { server_.now = kIssued + 24h; });
  server_.close();
  server_.open();
  uplink_->state(fact(HostState::draining));
  ASSERT_TRUE(uplink_->wait_acknowledged(60s));
  EXPECT_GE(server_.hellos, 3);
  EXPECT_LT(server_.times.at(3), kIssued + 3h);
}

TEST_F(UplinkTest, SendsTheRestAfterAnOutage) {
  uplink_->state(fact(HostState::preparing));
  ASSERT_TRUE(uplink_->wait_acknowledged(60s));
  server_.close();
  for (int i = 0; i < 10; ++i) uplink_->lines(line(std::to_string(i)));
  uplink_->state(fact(HostState::running));
  server_.open();
  EXPECT_TRUE(uplink_->wait_acknowledged(60s));
  EXPECT_TRUE(server_.wait([&] {
    return server_.states == std::vector<uint64_t>{1, 2} && server_.data_acknowledged == 10;
  }));
  EXPECT_GE(server_.hellos, 2);
}

TEST_F(UplinkTest, AnOfferPrecedesTheFinalFactAndIsRepeatedOnEachLink) {
  uplink_->state(fact(HostState::preparing));
  ASSERT_TRUE(uplink_->wait_acknowledged(60s));
  uplink_->offer([] { return wire::Idle{60s, false}; });
  uplink_->state(fact(HostState::finished));
  ASSERT_TRUE(uplink_->wait_acknowledged(60s));
  EXPECT_TRUE(server_.wait([&] {
    return server_.order == std::vector<std::string>{"preparing", "idle", "finished"};
  }));
  server_.close();
  server_.open();
  EXPECT_TRUE(server_.wait([&] { return server_.order.size() == 4; }));
  EXPECT_EQ(server_.order.back(), "idle");
}

TEST_F(UplinkTest, TheFinalFactWaitsForTheLogBeforeIt) {
  server_.note([&] { server_.acknowledges_data = false; });
  uplink_->lines(line("last words"));
  uplink_->state(fact(HostState::finished));
  ASSERT_TRUE(server_.wait([&] { return !server_.data.empty(); }));
  EXPECT_TRUE(server_.states.empty());
  server_.note([&] { server_.data_acknowledged = 1; });
  server_.say(wire::Acknowledge{wire::Track::data, 1});
  EXPECT_TRUE(server_.wait([&] { return server_.states == std::vector<uint64_t>{1}; }));
}

TEST_F(UplinkTest, DeliversOrders) {
  uplink_->state(fact(HostState::preparing));
  ASSERT_TRUE(uplink_->wait_acknowledged(60s));
  server_.say(wire::Stop{domain::StopCause::user, 5s});
  EXPECT_TRUE(server_.wait([&] {
    for (const auto& message : delivered_) {
      if (std::holds_alternative<wire::Stop>(message)) return true;
    }
    return false;
  }));
}

TEST_F(UplinkTest, SkipsMessagesOfALaterServer) {
  uplink_->state(fact(HostState::preparing));
  ASSERT_TRUE(uplink_->wait_acknowledged(60s));
  server_.send("\x7f of a later version");
  server_.send(wire::encode(wire::Acknowledge{wire::Track::other, 100}));
  server_.send(wire::encode(wire::Stop{domain::StopCause::user, 5s}) + "a field");
  EXPECT_TRUE(server_.wait([&] {
    return std::ranges::any_of(delivered_, [](const auto& message) {
      return std::holds_alternative<wire::Stop>(message);
    });
  }));
  uplink_->state(fact(HostState::running));
  ASSERT_TRUE(uplink_->wait_acknowledged(60s));
  server_.note([&] {
    EXPECT_EQ(server_.hellos, 1) << "the link stayed";
    for (const auto& message : delivered_)
      EXPECT_FALSE(std::holds_alternative<wire::Unknown>(message));
  });
}

// By a server that refuses, and by one whose version the agent does not support.
class UplinkRefused : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Both, UplinkRefused, testing::Bool());

TEST_P(UplinkRefused, IsDeliveredAndEndsReconnecting) {
  os::TemporaryDirectory directory;
  const std::string address = "unix:" + directory.path() + "/wire";
  Server server(address);
  server.refuses = GetParam();
  server.version = wire::kVersion + 1;
  os::MachineClock clock;
  os::MachineRandom random;
  Presence presence;
  os::MachineFiles files;
  const auto spool = std::move(*open_spool(files, directory.path() + "/spool", clock, presence));
  bool refused = false;
  Uplink uplink(
      {wire::kVersion, {7, 1}, 0, "t"}, *spool, presence,
      [&](net::LinkEvents events) { return net::connect_link(address, std::move(events)); }, clock,
      random,
      [&](const wire::Message& message) {
        server.note([&] { refused |= std::holds_alternative<wire::Refused>(message); });
      });
  uplink.start();
  EXPECT_TRUE(server.wait([&] { return refused; }));
  uplink.stop();
  EXPECT_EQ(server.hellos, 1);
}

}  // namespace
}  // namespace trainyard::agent
