#include "sdk/python/c10d/group_store.hpp"

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <thread>
#include <utility>
#include <vector>

namespace trainyard::sdk {
namespace {

using Store = c10::intrusive_ptr<c10d::Store>;

// Returns a failure of the store as a value: torch's own texts may be pages long.
template <class Doing>
auto of_store(const Doing& doing) -> Result<decltype(doing())> {
  try {
    return doing();
  } catch (const std::exception& failure) {
    const std::string text = failure.what();
    return unavailable(text.substr(0, text.find('\n')));
  }
}

Store part_of(const Store& store, const std::string& name) {
  return c10::make_intrusive<c10d::PrefixStore>("trainyard " + name, store);
}

void set(c10d::Store& store, const std::string& key, const std::string& value) {
  store.set(key, std::vector<uint8_t>(value.begin(), value.end()));
}

std::string text_at(c10d::Store& store, const std::string& key) {
  const auto value = store.get(key);
  return std::string(value.begin(), value.end());
}

// Waits until `key` is written. A store serves one call of a process at a time: a channel that
// waited in it for a late peer would block the other channels.
Result<void> poll_until_written(c10d::Store& store, const std::string& key,
                                std::chrono::milliseconds timeout,
                                const std::atomic<bool>& ending) {
  constexpr auto pause_max = std::chrono::milliseconds(20);
  auto pause = std::chrono::milliseconds(1);
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  while (!TRY(of_store([&] { return store.check({key}); }))) {
    if (ending.load()) return cancelled("the group has ended");
    if (std::chrono::steady_clock::now() > deadline)
      return unavailable("the key was not written within " + std::to_string(timeout.count()) +
                         " ms");
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, pause_max);
  }
  return ok();
}

}  // namespace

GroupStore::GroupStore(Store store, std::chrono::milliseconds timeout,
                       std::shared_ptr<const std::atomic<bool>> ending)
    : store_(std::move(store)), timeout_(timeout), ending_(std::move(ending)) {}

KeyValueStore GroupStore::part(const std::string& name, bool alone) const {
  const Store part = part_of(store_, name);
  KeyValueStore keys;
  keys.write = [part](const std::string& key, const std::string& value) { set(*part, key, value); };
  keys.read = [part, alone, timeout = timeout_,
               ending = ending_](const std::string& key) -> Result<std::string> {
    if (!alone) TRY(poll_until_written(*part, key, timeout, *ending));
    return of_store([&] {
      if (alone) part->wait({key}, timeout);
      return text_at(*part, key);
    });
  };
  return keys;
}

Store GroupStore::directory(int rank) const {
  return part_of(store_, "senders to " + std::to_string(rank));
}

Result<void> GroupStore::announce(int rank, int to) const {
  const Store entries = directory(to);
  const std::string text = std::to_string(rank);
  TRY(of_store([&] {
        set(*entries, std::to_string(entries->add("count", 1) - 1), text);
        return true;
      }).in("announcing to rank " + std::to_string(to) + " that rank " + text + " sends to it"));
  return ok();
}

std::optional<int> GroupStore::sender(int rank, int64_t number) const {
  const Store entries = directory(rank);
  const std::string key = std::to_string(number);
  const auto text =
      of_store([&] { return entries->check({key}) ? text_at(*entries, key) : std::string(); });
  if (!text || text->empty()) return std::nullopt;
  return int(std::strtol(text->c_str(), nullptr, 10));
}

}  // namespace trainyard::sdk
