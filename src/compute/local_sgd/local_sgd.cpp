#include "local_sgd/local_sgd.hpp"

#include <algorithm>
#include <chrono>
#include <optional>
#include <thread>
#include <utility>

#include "base/check.hpp"
#include "local_sgd/links.hpp"
#include "local_sgd/region_group.hpp"

namespace trainyard::local_sgd {
namespace {

using SteadyClock = std::chrono::steady_clock;

// for a handshake in progress: a few round trips on a long link
constexpr Duration kSettleMax = 300ms;
constexpr Duration kRemindInterval = 5s;  // the longest delay after two messages have crossed
// to be admitted again; then the reachable regions found a group
constexpr Duration kRejoinTimeout = 15s;
// between the join deadlines of the first and the last region
constexpr Duration kFoundingMax = 10s;
constexpr Duration kCheckInterval = 1s;  // the longest delay in noticing a limit

}  // namespace

size_t round_bytes(Coding coding, size_t parameters, int regions) {
  const std::string gradient(coded_bytes(coding, parameters), '\0');
  const size_t there =
      encode(Message(Offer{0, 0, 0, coding, gradient})).size() + collectives::kFrameHeaderBytes;
  const size_t back =
      encode(Message(Averaged{0, Members(size_t(regions)), coding, gradient})).size() +
      collectives::kFrameHeaderBytes;
  return size_t(regions - 1) * (there + back);
}

class LocalSgd::Impl {
 public:
  Impl(LocalSgdOptions options, std::span<const float> parameters, std::unique_ptr<Links> links)
      : options_(std::move(options)),
        replica_({parameters.begin(), parameters.end()}, options_.charter, options_.outer,
                 options_.coding),
        region_group_(replica_, uint32_t(options_.region), uint32_t(options_.leaders.size())),
        links_(std::move(links)) {}

  Result<void> join(std::span<float> parameters) {
    TRY(become_member());
    (void)region_group_.take_caught_up();
    take(parameters);
    return ok();
  }

  Result<Round> average(std::span<float> parameters, double weight) {
    if (parameters.size() != replica_.parameters().size())
      return invalid(std::to_string(parameters.size()) +
                     " parameters, but the region joined with " +
                     std::to_string(replica_.parameters().size()));
    if (!(weight >= 0))
      return invalid("invalid weight " + std::to_string(weight) + ": it must not be negative");
    // Handles what arrived during training: regions joined, were lost, or lead now.
    TRY(drain(links_->is_handshaking() ? kSettleMax : 0ms));
    if (!region_group_.is_member()) TRY(become_member());
    if (!region_group_.take_caught_up()) {
      region_group_.offer(TRY(replica_.offer(parameters, weight)));
      TRY(run_until([&] { return region_group_.is_member() && !region_group_.offering(); }));
    }
    const bool caught_up = region_group_.take_caught_up();
    TRY(drain(0ms));  // sends the answers before the caller trains again
    take(parameters);
    return Round{replica_.round(), int(region_group_.size_of_round()), caught_up};
  }

  Result<void> finish() {
    region_group_.finish();
    return run_until([&] { return region_group_.may_leave() && links_->all_sent(); });
  }

  const Replica& replica() const { return replica_; }
  int size() const { return int(region_group_.size()); }
  RegionTraffic traffic() const { return {links_->traffic().sent, links_->traffic().received}; }
  std::vector<std::string> take_news() { return std::exchange(news_, {}); }

 private:
  void take(std::span<float> parameters) const {
    std::copy(replica_.parameters().begin(), replica_.parameters().end(), parameters.begin());
  }

  Result<void> become_member() {
    return run_until([&] { return region_group_.is_member(); });
  }

  // The only loop: passes events of the links to the group, and messages of the group to the links.
  template <class Done>
  Result<void> run_until(const Done& done) {
    progress_at_ = reminded_at_ = SteadyClock::now();
    for (;;) {
      post_outgoing();
      if (done()) {
        joining_since_.reset();
        was_member_ = true;
        return flush();
      }
      TRY(handle_events(TRY(links_->wait(kCheckInterval))));
      TRY(check_limits());
    }
  }

  Result<void> drain(Duration at_most) {
    const auto end = SteadyClock::now() + at_most;
    for (;;) {
      post_outgoing();
      const auto left = std::chrono::ceil<Duration>(end - SteadyClock::now());
      const bool waits = left > 0ms && links_->is_handshaking();
      const auto events = TRY(links_->wait(waits ? left : 0ms));
      TRY(handle_events(events));
      if (events.empty() && !waits) return ok();
    }
  }

  // Waits until all is sent: the message of a leader may be larger than the buffer of a socket.
  Result<void> flush() {
    const auto end = SteadyClock::now() + options_.round_timeout;
    while (!links_->all_sent() && SteadyClock::now() < end) {
      TRY(handle_events(TRY(links_->wait(LinkOptions::kCancelCheckInterval))));
      post_outgoing();
    }
    return ok();
  }

  void post_outgoing() {
    for (const Outgoing& each : region_group_.take_outgoing())
      links_->send(each.to, encode(each.message));
  }

  Result<void> handle_events(const std::vector<LinkEvent>& events) {
    for (const LinkEvent& event : events) {
      progress_at_ = SteadyClock::now();
      const std::string name = links_->name_of(event.region);
      if (event.kind == LinkEvent::Kind::linked) {
        news_.push_back(name + " connected");
        region_group_.linked(event.region);
      } else if (event.kind == LinkEvent::Kind::lost) {
        news_.push_back("lost " + name + ": " + event.text);
        region_group_.lost(event.region);
      } else if (auto message = decode_message(event.text)) {
        region_group_.received(event.region, *std::move(message));
      } else {
        links_->close(event.region, message.error().message);
      }
    }
    if (news_.size() > kNewsMax) news_.erase(news_.begin(), news_.end() - kNewsMax);
    if (!region_group_.refused()) return ok();
    // Sends the refusal to the other region too.
    post_outgoing();
    (void)links_->wait(0ms);
    return conflict(*region_group_.refused());
  }

  Result<void> check_limits() {
    const auto now = SteadyClock::now();
    if (now - reminded_at_ >= kRemindInterval && now - progress_at_ >= kRemindInterval) {
      reminded_at_ = now;
      region_group_.resend_state();
    }
    if (!region_group_.is_member()) return check_joining(now);
    joining_since_.reset();
    was_member_ = true;
    // A leader waits for the others; any other region waits for the leader, and longer, since the
    // leader may be waiting too.
    const bool leads = region_group_.leader() == uint32_t(options_.region);
    if (now - progress_at_ < (leads ? options_.round_timeout : 2 * options_.round_timeout))
      return ok();
    progress_at_ = now;
    for (const uint32_t each : region_group_.waited_for())
      links_->close(each, "timed out after " + std::to_string(options_.round_timeout.count()) +
                              " ms without a message");
    return ok();
  }

  Result<void> check_joining(SteadyClock::time_point now) {
    if (!joining_since_) joining_since_ = now;
    const auto waited = now - *joining_since_;
    if (was_member_ && waited >= kRejoinTimeout) region_group_.form_with(1);
    if (waited < options_.join_deadline) return ok();
    if (options_.regions_min > 0) region_group_.form_with(uint32_t(options_.regions_min));
    // Another region may found the group, and its deadline may end a little later.
    if (region_group_.is_member() ||
        (options_.regions_min > 0 && waited < options_.join_deadline + kFoundingMax))
      return ok();
    std::string missing;
    for (uint32_t region = 0; region < options_.leaders.size(); ++region) {
      if (region == uint32_t(options_.region) || region_group_.is_linked(region)) continue;
      missing += (missing.empty() ? "" : ", ") + links_->name_of(region);
      if (region < uint32_t(options_.region)) missing += " [" + links_->last_failure(region) + "]";
    }
    return unavailable(
        (missing.empty() ? "no region admitted this one" : missing + " did not join") + " within " +
        std::to_string(options_.join_deadline.count()) + " ms");
  }

  static constexpr size_t kNewsMax = 100;  // lines: more than a person would read

  const LocalSgdOptions options_;
  Replica replica_;
  RegionGroup region_group_;
  std::unique_ptr<Links> links_;
  std::vector<std::string> news_;
  std::optional<SteadyClock::time_point> joining_since_;
  SteadyClock::time_point progress_at_;
  SteadyClock::time_point reminded_at_;
  bool was_member_ = false;
};

LocalSgd::LocalSgd(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
LocalSgd::~LocalSgd() = default;

Result<std::unique_ptr<LocalSgd>> LocalSgd::join(LocalSgdOptions options,
                                                 std::span<float> parameters) {
  const size_t regions = options.leaders.size();
  if (regions == 0 || regions > kRegionsMax)
    return invalid("invalid number of regions " + std::to_string(regions) + ": use 1 to " +
                   std::to_string(kRegionsMax));
  if (options.region < 0 || size_t(options.region) >= regions)
    return invalid("invalid region " + std::to_string(options.region) + ": use 0 to " +
                   std::to_string(regions - 1));
  if (parameters.empty()) return invalid("the model has no parameters");
  if (options.charter.size() > kCharterBytesMax)
    return invalid("the charter has " + std::to_string(options.charter.size()) +
                   " bytes; the maximum is " + std::to_string(kCharterBytesMax));
  if (options.shared_value.size() > collectives::TcpOptions::kSharedValueBytesMax)
    return invalid("the shared secret has " + std::to_string(options.shared_value.size()) +
                   " bytes; the maximum is " +
                   std::to_string(collectives::TcpOptions::kSharedValueBytesMax));
  if (options.encrypt && options.shared_value.empty())
    return invalid("encryption between regions needs a shared secret");
  const auto deadline = SteadyClock::now() + options.join_deadline;
  LinkOptions link_options{options.leaders,
                           uint32_t(options.region),
                           options.shared_value,
                           options.encrypt,
                           message_bytes_max(parameters.size()),
                           options.cancelled};
  auto links = Links::open(link_options);
  // Retries while this region's host name does not resolve or its address is not configured yet.
  while (!links && links.error().kind == Kind::unavailable && SteadyClock::now() < deadline) {
    if (options.cancelled && options.cancelled())
      return cancelled("cancelled while waiting for this region's address");
    std::this_thread::sleep_for(LinkOptions::kCancelCheckInterval);
    links = Links::open(link_options);
  }
  if (!links) return std::move(links).error();
  auto impl = std::make_unique<Impl>(std::move(options), parameters, *std::move(links));
  TRY(impl->join(parameters).in("joining the regions"));
  return std::unique_ptr<LocalSgd>(new LocalSgd(std::move(impl)));
}

Result<Round> LocalSgd::average(std::span<float> parameters, double weight) {
  return impl_->average(parameters, weight)
      .in("round " + std::to_string(round() + 1) + " of the regions");
}
Result<void> LocalSgd::finish() {
  return impl_->finish().in("after the last round of the regions");
}
uint64_t LocalSgd::round() const { return impl_->replica().round(); }
const std::string& LocalSgd::charter() const { return impl_->replica().charter(); }
int LocalSgd::size() const { return impl_->size(); }
RegionTraffic LocalSgd::traffic() const { return impl_->traffic(); }
std::vector<std::string> LocalSgd::take_news() { return impl_->take_news(); }

}  // namespace trainyard::local_sgd
