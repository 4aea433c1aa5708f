#include "membership/membership.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

namespace trainyard::membership {
namespace {

constexpr size_t kReasonBytesMax = 2000;  // enough for a person to read

template <class... Each>
struct Overloaded : Each... {
  using Each::operator()...;
};
template <class... Each>
Overloaded(Each...) -> Overloaded<Each...>;

}  // namespace

std::vector<Action> Membership::on(const Event& event, Instant now) {
  std::visit(Overloaded{
                 [&](const events::Expected& each) {
                   members_.try_emplace(each.name).first->second.applicant.name = each.name;
                 },
                 [&](const events::Came& each) { came(each.applicant, now); },
                 [&](const events::Gone& each) { gone(each.name, each.why); },
                 [&](const events::HostLeaves& each) { host_leaves(each.host); },
                 [&](const events::HostReturns& each) { std::erase(leaving_hosts_, each.host); },
                 [](const events::TimePasses&) {},
             },
             event);
  dismiss_late_members(now);
  form(now);
  return std::exchange(actions_, {});
}

void Membership::came(const Applicant& applicant, Instant now) {
  if (leaving(applicant.host))
    return dismiss(applicant.name, "its host " + applicant.host + " is being removed");
  if (limits_.generations_max > 0 && generation_ >= uint64_t(limits_.generations_max)) {
    return dismiss(applicant.name,
                   "the training has had " + std::to_string(generation_) +
                       " generations of ranks, the maximum: the training fails repeatedly");
  }
  Member& member = members_[applicant.name];
  const bool is_new = member.arrival == 0;
  if (is_new && done_) return dismiss(applicant.name, "the training is done");
  if (is_new) member.arrival = ++arrivals_;
  const bool ran = member.state == State::running;
  if (ran && !returned_since_) returned_since_ = now;
  member.state = State::waiting;
  member.applicant = applicant;
  // Members that are still joining that generation would wait for this one. Members that have
  // joined notice the loss themselves.
  if (ran && !applicant.complaint.empty() && count(State::running) > 0)
    actions_.emplace_back(actions::Lost{applicant.name, applicant.complaint});
  // Records only the first complaint: the other members failed for the same reason.
  if (!applicant.complaint.empty() && reason_.empty())
    note((member.rank >= 0 ? "rank " + std::to_string(member.rank) + " (" + applicant.name + "): "
                           : applicant.name + ": ") +
         applicant.complaint);
  if (is_new && generation_ > 0) {
    note(applicant.name + " came");
    if (count(State::running) > 0 && int(count(State::running)) < limits_.ranks_max &&
        !announced_.added) {
      announced_.added = true;
      actions_.emplace_back(actions::Changed{.added = true, .removed = false});
    }
  }
}

void Membership::gone(const std::string& name, const std::string& why) {
  const auto found = members_.find(name);
  if (found == members_.end()) return;
  const Member member = std::move(found->second);
  members_.erase(found);
  // The other members are about to be done, too. New members would start from the beginning.
  if (why.empty() && member.rank >= 0 && !done_) {
    done_ = true;
    for (const std::string& newcomer : in_order())
      if (members_[newcomer].rank < 0) dismiss(newcomer, "the training is done");
  }
  if (why.empty() || member.state == State::expected) return;
  note((member.rank >= 0 ? "rank " + std::to_string(member.rank) + " (" + name + ")" : name) +
       " was lost: " + why);
  if (member.state != State::running) return;
  if (count(State::running) > 0) actions_.emplace_back(actions::Lost{name, why});
}

void Membership::host_leaves(const std::string& host) {
  if (leaving(host)) return;
  leaving_hosts_.push_back(host);
  bool runs = false;
  std::vector<std::string> idle;
  for (const auto& [name, member] : members_) {
    if (member.applicant.host != host) continue;
    runs |= member.state == State::running;
    if (member.state == State::waiting) idle.push_back(name);
  }
  for (const auto& name : idle) dismiss(name, "its host " + host + " is being removed");
  if (!runs) return;
  note("host " + host + " leaves");
  if (!announced_.removed) {
    announced_.removed = true;
    actions_.emplace_back(actions::Changed{.added = false, .removed = true});
  }
}

void Membership::dismiss(const std::string& name, const std::string& why) {
  members_.erase(name);
  actions_.emplace_back(actions::Dismissed{name, why});
}

void Membership::dismiss_late_members(Instant now) {
  // The timeout starts when the first member returns: a member that was only notified of a new one
  // may train for a whole epoch.
  if (!returned_since_ || now - *returned_since_ < limits_.settle_max) return;
  for (const std::string& name : running()) {
    note("rank " + std::to_string(members_[name].rank) + " (" + name + ") did not return");
    dismiss(name, "the other ranks waited " + std::to_string(limits_.settle_max.count()) +
                      " ms for it to return");
  }
}

void Membership::form(Instant now) {
  const auto order = in_order();
  if (order.empty() || count(State::running) > 0) return;
  if (!idle_since_) idle_since_ = now;
  if (int(order.size()) < limits_.ranks_min) return;
  const bool late = now - *idle_since_ >= limits_.settle_max;
  if (count(State::expected) > 0 && int(order.size()) < limits_.ranks_max && !late) return;

  Generation generation{++generation_, {}, std::exchange(reason_, {})};
  for (const std::string& name : order) {
    // other members wait for a slot
    if (int(generation.slots.size()) == limits_.ranks_max) break;
    Member& member = members_[name];
    member.state = State::running;
    member.rank = int(generation.slots.size());
    generation.slots.push_back({name, member.applicant.host, member.applicant.endpoint, 0, 0});
  }
  std::map<std::string, int> of_host;
  for (Slot& slot : generation.slots) slot.local_rank = of_host[slot.host]++;
  for (Slot& slot : generation.slots) slot.local_ranks = of_host[slot.host];
  returned_since_.reset();
  idle_since_.reset();
  announced_ = {};
  actions_.emplace_back(actions::Formed{std::move(generation)});
}

bool Membership::leaving(const std::string& host) const {
  return std::find(leaving_hosts_.begin(), leaving_hosts_.end(), host) != leaving_hosts_.end();
}

size_t Membership::count(State state) const {
  return size_t(std::count_if(members_.begin(), members_.end(),
                              [state](const auto& each) { return each.second.state == state; }));
}

size_t Membership::waiting() const { return count(State::waiting); }

std::vector<std::string> Membership::running() const {
  std::vector<std::pair<int, std::string>> ranks;
  for (const auto& [name, member] : members_)
    if (member.state == State::running) ranks.emplace_back(member.rank, name);
  std::sort(ranks.begin(), ranks.end());
  std::vector<std::string> names;
  for (auto& [rank, name] : ranks) names.push_back(std::move(name));
  return names;
}

std::vector<std::string> Membership::in_order() const {
  // Orders members of the last generation by rank, then members that want a certain rank, then the
  // others by arrival.
  constexpr int none = 1 << 30;
  std::vector<std::tuple<int, int, uint64_t, std::string>> keys;
  for (const auto& [name, member] : members_) {
    if (member.state != State::waiting) continue;
    const int wanted = member.applicant.wanted_rank;
    keys.emplace_back(member.rank < 0 ? none : member.rank, wanted < 0 ? none : wanted,
                      member.arrival, name);
  }
  std::sort(keys.begin(), keys.end());
  std::vector<std::string> names;
  for (auto& key : keys) names.push_back(std::move(std::get<3>(key)));
  return names;
}

std::string Membership::missing() const {
  std::string text;
  const auto add = [&](const std::string& each) { text += (text.empty() ? "" : ", ") + each; };
  if (waiting() == 0) return text;
  for (const auto& [name, member] : members_) {
    if (member.state == State::running)
      add("rank " + std::to_string(member.rank) + " (" + name + ") is still running");
    if (member.state == State::expected) add(name + " was started but has not applied for a rank");
  }
  if (int(waiting()) < limits_.ranks_min)
    add(std::to_string(waiting()) + " of at least " + std::to_string(limits_.ranks_min) + " ranks");
  return text;
}

void Membership::note(const std::string& why) {
  if (reason_.size() + why.size() + 2 > kReasonBytesMax) return;
  reason_ += (reason_.empty() ? "" : "; ") + why;
}

}  // namespace trainyard::membership
