// NotifyWorld is a Notifications in a temporary directory, whose transport a test controls.
//
// Threads: confined to the test's thread, which also attempts deliveries.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/testing/test_clock.hpp"
#include "notify/event_bus.hpp"
#include "notify/notifications.hpp"
#include "observe/testing/test_world.hpp"

namespace trainyard::notify {

struct NotifyWorld {
  observe::TemporaryDirectory directory;
  TestClock clock;
  SeededRandom random{1};
  FileFaults* faults = nullptr;
  DeliveryLimits limits;
  std::vector<Outgoing> sent;  // all attempts
  std::function<void(const Outgoing&)> on_send = [](const Outgoing&) {};
  std::map<std::string, std::vector<Sent>> answers;  // by endpoint: used in order, then success
  std::unique_ptr<Notifications> all;
  std::unique_ptr<EventBus> bus;
  std::vector<std::pair<std::string, std::string>> events;  // the target's id, the body

  static constexpr const char* kTopic = "arn:aws:sns:eu-west-1:123456789012:alerts";

  Result<void> open() {
    NotifySettings settings;
    settings.path = directory.path() + "/notifications.db";
    settings.faults = faults;
    settings.limits = limits;
    settings.urls.base = "https://yard:4566/_sns/";
    const Transport transport = [this](const Outgoing& out) {
      sent.push_back(out);
      on_send(out);
      auto& list = answers[out.endpoint];
      if (list.empty()) return Sent{};
      const Sent answer = list.front();
      list.erase(list.begin());
      return answer;
    };
    settings.transports = {{Protocol::http, transport},
                           {Protocol::https, transport},
                           {Protocol::email, transport},
                           {Protocol::command, transport}};
    auto signer = TRY(MessageSigner::open(directory.path() + "/notify", clock.now()));
    all = TRY(Notifications::open(std::move(settings), std::move(signer), clock, random));
    all->deliver_events([this](const KnownRule&, const Target& target, const Message& message) {
      events.emplace_back(target.id, message.body);
      return Sent{};
    });
    bus = std::make_unique<EventBus>(*all, "123456789012", clock);
    return {};
  }
  void close() {
    bus.reset();
    all.reset();
  }
  // Reopens the file, as after a kill.
  Result<void> reopen() {
    close();
    return open();
  }
  // Adds a confirmed subscription of the topic.
  Subscription subscribe(const std::string& endpoint,
                         const std::function<void(Subscription&)>& edit = {}) {
    Subscription wanted;
    wanted.topic = kTopic;
    wanted.protocol = Protocol::https;
    wanted.endpoint = endpoint;
    if (edit) edit(wanted);
    const auto made = all->subscribe(wanted);
    EXPECT_TRUE(made) << (made ? "" : made.error().message);
    all->deliverer().attempt_due();  // the confirmation
    sent.clear();
    const auto confirmed = all->confirm(kTopic, made->token, false);
    EXPECT_TRUE(confirmed);
    return *confirmed;
  }
  void topic() { EXPECT_TRUE(all->create_topic({.arn = kTopic})); }
  Result<std::string> publish(const std::string& body) {
    return all->publish_to_topic(kTopic, "", body);
  }
};

}  // namespace trainyard::notify
