#include "local_sgd/regions.hpp"

#include <algorithm>
#include <chrono>
#include <optional>
#include <thread>
#include <utility>

#include "base/check.hpp"
#include "local_sgd/council.hpp"
#include "local_sgd/links.hpp"

namespace trainyard::local_sgd {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr Duration settle_max = 300ms;     // for somebody at the door: a few round trips of a long link
constexpr Duration remind_interval = 5s;   // what two messages that crossed cost, at most
constexpr Duration veteran_timeout = 15s;  // to be taken in again; then those who are here go on
constexpr Duration founding_max = 10s;     // between the first region's deadline and the last one's
constexpr Duration look_interval = 1s;     // how late a limit may be noticed

}  // namespace

size_t round_bytes(Coding coding, size_t parameters, int regions) {
  const std::string gradient(coded_bytes(coding, parameters), '\0');
  const size_t there =
      encode(Message(Offer{0, 0, 0, coding, gradient})).size() + collectives::frame_header_bytes;
  const size_t back = encode(Message(Averaged{0, Members(size_t(regions)), coding, gradient})).size() +
                      collectives::frame_header_bytes;
  return size_t(regions - 1) * (there + back);
}

class Regions::Impl {
 public:
  Impl(RegionOptions options, std::span<const float> parameters, std::unique_ptr<Links> links)
      : options_(std::move(options)),
        replica_({parameters.begin(), parameters.end()}, options_.charter, options_.outer, options_.coding),
        council_(replica_, uint32_t(options_.region), uint32_t(options_.leaders.size())),
        links_(std::move(links)) {}

  Result<void> join(std::span<float> parameters) {
    TRY(become_member());
    (void)council_.take_adopted();
    take(parameters);
    return ok();
  }

  Result<Round> average(std::span<float> parameters, double weight) {
    if (parameters.size() != replica_.parameters().size())
      return invalid("as many parameters as when we joined");
    if (!(weight >= 0)) return invalid("a weight is not negative");
    // What came while we trained: somebody who went, came, or leads now.
    TRY(drain(links_->greets() ? settle_max : 0ms));
    if (!council_.is_member()) TRY(become_member());
    if (!council_.take_adopted()) {
      council_.offer(TRY(replica_.offer(parameters, weight)));
      TRY(until([&] { return council_.is_member() && !council_.offering(); }));
    }
    const bool adopted = council_.take_adopted();
    TRY(drain(0ms));  // our answers go out before we train again
    take(parameters);
    return Round{replica_.round(), int(council_.size()), adopted};
  }

  Result<void> finish() {
    council_.finish();
    return until([&] { return council_.may_leave() && links_->all_sent(); });
  }

  const Replica& replica() const { return replica_; }
  int size() const { return int(council_.size()); }
  RegionTraffic traffic() const { return {links_->traffic().sent, links_->traffic().received}; }
  std::vector<std::string> take_news() { return std::exchange(news_, {}); }

 private:
  void take(std::span<float> parameters) const {
    std::copy(replica_.parameters().begin(), replica_.parameters().end(), parameters.begin());
  }

  Result<void> become_member() {
    return until([&] { return council_.is_member(); });
  }

  // The only loop: what happens on the links goes to the council, what it says goes to the links.
  template <class Done>
  Result<void> until(const Done& done) {
    progress_at_ = reminded_at_ = SteadyClock::now();
    for (;;) {
      post();
      if (done()) {
        joining_since_.reset();
        was_member_ = true;
        return flush();
      }
      TRY(look_at(TRY(links_->wait(look_interval))));
      TRY(check_limits());
    }
  }

  Result<void> drain(Duration at_most) {
    const auto end = SteadyClock::now() + at_most;
    for (;;) {
      post();
      const auto left = std::chrono::ceil<Duration>(end - SteadyClock::now());
      const bool waits = left > 0ms && links_->greets();
      const auto events = TRY(links_->wait(waits ? left : 0ms));
      TRY(look_at(events));
      if (events.empty() && !waits) return ok();
    }
  }

  // A leader's answer may be larger than a socket's buffer.
  Result<void> flush() {
    const auto end = SteadyClock::now() + options_.round_timeout;
    while (!links_->all_sent() && SteadyClock::now() < end) {
      TRY(look_at(TRY(links_->wait(LinkOptions::cancel_check_interval))));
      post();
    }
    return ok();
  }

  void post() {
    for (const Outgoing& each : council_.take_outgoing()) links_->send(each.to, encode(each.message));
  }

  Result<void> look_at(const std::vector<LinkEvent>& events) {
    for (const LinkEvent& event : events) {
      progress_at_ = SteadyClock::now();
      const std::string name = links_->name_of(event.region);
      if (event.what == LinkEvent::What::linked) {
        news_.push_back(name + " is here");
        council_.linked(event.region);
      } else if (event.what == LinkEvent::What::lost) {
        news_.push_back(name + " is gone: " + event.text);
        council_.lost(event.region);
      } else if (auto message = decode_message(event.text)) {
        council_.heard(event.region, *std::move(message));
      } else {
        links_->close(event.region, message.error().message);
      }
    }
    if (news_.size() > news_max) news_.erase(news_.begin(), news_.end() - news_max);
    if (!council_.refused()) return ok();
    // It deserves to hear why as well.
    post();
    (void)links_->wait(0ms);
    return conflict(*council_.refused());
  }

  Result<void> check_limits() {
    const auto now = SteadyClock::now();
    if (now - reminded_at_ >= remind_interval && now - progress_at_ >= remind_interval) {
      reminded_at_ = now;
      council_.remind();
    }
    if (!council_.is_member()) return check_joining(now);
    joining_since_.reset();
    was_member_ = true;
    // Who leads waits for the others; who does not, for the leader, and longer, since it may be waiting itself.
    const bool leads = council_.leader() == uint32_t(options_.region);
    if (now - progress_at_ < (leads ? options_.round_timeout : 2 * options_.round_timeout)) return ok();
    progress_at_ = now;
    for (const uint32_t each : council_.waited_for())
      links_->close(each, "nothing from it for " + std::to_string(options_.round_timeout.count()) + " ms");
    return ok();
  }

  Result<void> check_joining(SteadyClock::time_point now) {
    if (!joining_since_) joining_since_ = now;
    const auto waited = now - *joining_since_;
    if (was_member_ && waited >= veteran_timeout) council_.found_with(1);
    if (waited < options_.join_deadline) return ok();
    if (options_.regions_min > 0) council_.found_with(uint32_t(options_.regions_min));
    // Somebody else may be the one to found, and its watch a little late.
    if (council_.is_member() || (options_.regions_min > 0 && waited < options_.join_deadline + founding_max))
      return ok();
    std::string missing;
    for (uint32_t region = 0; region < options_.leaders.size(); ++region) {
      if (region == uint32_t(options_.region) || council_.is_linked(region)) continue;
      missing += (missing.empty() ? "" : ", ") + links_->name_of(region);
      if (region < uint32_t(options_.region)) missing += " [" + links_->last_failure(region) + "]";
    }
    return unavailable((missing.empty() ? "no region took us in" : missing + " did not come") + " within " +
                       std::to_string(options_.join_deadline.count()) + " ms");
  }

  static constexpr size_t news_max = 100;  // lines: what a person would read of them

  const RegionOptions options_;
  Replica replica_;
  Council council_;
  std::unique_ptr<Links> links_;
  std::vector<std::string> news_;
  std::optional<SteadyClock::time_point> joining_since_;
  SteadyClock::time_point progress_at_;
  SteadyClock::time_point reminded_at_;
  bool was_member_ = false;
};

Regions::Regions(std::unique_ptr<Impl> inside) : impl_(std::move(inside)) {}
Regions::~Regions() = default;

Result<std::unique_ptr<Regions>> Regions::join(RegionOptions options, std::span<float> parameters) {
  const size_t regions = options.leaders.size();
  if (regions == 0 || regions > regions_max)
    return invalid("from 1 to " + std::to_string(regions_max) + " regions, not " + std::to_string(regions));
  if (options.region < 0 || size_t(options.region) >= regions)
    return invalid("region " + std::to_string(options.region) + " is none of the " + std::to_string(regions));
  if (parameters.empty()) return invalid("a model without parameters");
  if (options.charter.size() > charter_bytes_max) return invalid("the charter is too long");
  if (options.shared_value.size() > collectives::TcpOptions::shared_value_bytes_max)
    return invalid("the shared value is too long");
  if (options.encrypt && options.shared_value.empty())
    return invalid("regions without a secret cannot encrypt");
  const auto deadline = SteadyClock::now() + options.join_deadline;
  LinkOptions link_options{options.leaders,
                           uint32_t(options.region),
                           options.shared_value,
                           options.encrypt,
                           message_bytes_max(parameters.size()),
                           options.cancelled};
  auto links = Links::open(link_options);
  // Our own name may not be known yet, nor our address be there: both are worth waiting for.
  while (!links && links.error().kind == Kind::unavailable && SteadyClock::now() < deadline) {
    if (options.cancelled && options.cancelled())
      return cancelled("told to stop while waiting for our address");
    std::this_thread::sleep_for(LinkOptions::cancel_check_interval);
    links = Links::open(link_options);
  }
  if (!links) return std::move(links).error();
  auto inside = std::make_unique<Impl>(std::move(options), parameters, *std::move(links));
  TRY(inside->join(parameters).in("joining the regions"));
  return std::unique_ptr<Regions>(new Regions(std::move(inside)));
}

Result<Round> Regions::average(std::span<float> parameters, double weight) {
  return impl_->average(parameters, weight).in("round " + std::to_string(round() + 1) + " of the regions");
}
Result<void> Regions::finish() { return impl_->finish().in("after the last round of the regions"); }
uint64_t Regions::round() const { return impl_->replica().round(); }
const std::string& Regions::charter() const { return impl_->replica().charter(); }
int Regions::size() const { return impl_->size(); }
RegionTraffic Regions::traffic() const { return impl_->traffic(); }
std::vector<std::string> Regions::take_news() { return impl_->take_news(); }

}  // namespace trainyard::local_sgd
