#include "schedule/preemption.hpp"

#include <algorithm>

namespace trainyard::schedule {
namespace {

// PreemptionSearch finds the smallest set of running jobs whose end lets the job start.
class PreemptionSearch {
 public:
  PreemptionSearch(const WaitingJob& job, const Gang& gang, const PreemptionView& view)
      : job_(job), gang_(gang), view_(view) {
    const auto& all = view.allocations.all();
    for (uint32_t i = 0; i < all.size(); ++i) {
      if (!view.quotas.may_be_preempted(all[i], job) ||
          std::ranges::find(view.leaving, i) != view.leaving.end())
        continue;
      (*all[i].share == job.share ? within_ : across_).push_back(i);
    }
  }

  std::optional<PreemptionChoice> run() {
    if (fits({}, false)) return result({});
    // A share reclaims from borrowers first; only then are its own jobs preempted.
    if (auto found = fewest(across_, true)) return result(*found);
    if (auto found = fewest(within_, false)) return result(*found);
    std::vector<uint32_t> both = across_;
    both.insert(both.end(), within_.begin(), within_.end());
    if (auto found = fewest(both, true)) return result(*found);
    return std::nullopt;
  }

 private:
  using Set = std::vector<uint32_t>;

  // Orders candidates by priority, the lowest first; of equals the youngest first.
  bool preempted_before(uint32_t a, uint32_t b) const {
    const Running& one = *view_.allocations.all()[a].running;
    const Running& other = *view_.allocations.all()[b].running;
    if (one.priority != other.priority) return one.priority < other.priority;
    if (one.started != other.started) return one.started > other.started;
    return one.job > other.job;
  }
  double quota_of(uint32_t index) const {
    double all = 0;
    for (const Demand& demand : *view_.allocations.all()[index].demands) all += demand.amount;
    return all;
  }

  // Tries two orders: lowest priority first, and largest first. The smaller set wins.
  std::optional<Set> fewest(Set candidates, bool of_its_own) const {
    std::ranges::sort(candidates,
                      [this](uint32_t a, uint32_t b) { return preempted_before(a, b); });
    auto found = choose(candidates, of_its_own);
    if (!found || found->size() == 1) return found;
    std::ranges::stable_sort(candidates,
                             [this](uint32_t a, uint32_t b) { return quota_of(a) > quota_of(b); });
    auto larger = choose(candidates, of_its_own);
    return larger && larger->size() < found->size() ? larger : found;
  }

  // Adds candidates in order until the job fits; then removes each that is not needed.
  std::optional<Set> choose(const Set& candidates, bool of_its_own) const {
    Set chosen;
    bool enough = false;
    for (const uint32_t each : candidates) {
      if (enough || chosen.size() == kPreemptedMax) break;
      const bool across = *view_.allocations.all()[each].share != job_.share;
      if (across && !view_.quotas.beyond_without(view_.allocations, each, chosen, job_)) continue;
      chosen.push_back(each);
      enough = fits(chosen, of_its_own);
    }
    if (!enough) return std::nullopt;
    for (size_t i = chosen.size(); i-- > 0;) {
      Set fewer = chosen;
      fewer.erase(fewer.begin() + ptrdiff_t(i));
      if (fits(fewer, of_its_own)) chosen = std::move(fewer);
    }
    return chosen;
  }

  bool fits(const Set& ended, bool of_its_own) const {
    const bool quota = of_its_own ? view_.quotas.own_without(job_, view_.allocations, ended)
                                  : view_.quotas.fits_without(job_, view_.allocations, ended);
    return quota && has_limits(ended) && has_machines(ended);
  }

  bool has_limits(const Set& ended) const {
    if (job_.choices.empty()) return true;
    Set all = view_.leaving;
    all.insert(all.end(), ended.begin(), ended.end());
    return std::ranges::any_of(job_.choices, [&](const Choice& choice) {
      return view_.limits.fits_without(choice, job_.queue, gang_.cpus, view_.ends,
                                       view_.allocations, all);
    });
  }

  std::vector<Share> free_without(const Set& ended) const {
    std::vector<Share> free = view_.then;
    for (const uint32_t index : ended)
      for (const HeldHost& host : view_.allocations.hosts(view_.allocations.all()[index]))
        free[host.machine] = plus(free[host.machine], host.share);
    if (view_.spare)
      for (size_t m = 0; m < free.size(); ++m) free[m] = least_of(free[m], (*view_.spare)[m]);
    return free;
  }

  bool has_machines(const Set& ended) const {
    const std::vector<Share> free = free_without(ended);
    if (!gang_.even()) return FreeCapacity(view_.topology, free).place(gang_).has_value();
    int64_t times = 0;
    for (const Share& each : free) {
      times += times_within(gang_.groups.front().share, each);
      if (times >= gang_.hosts) return true;
    }
    return false;
  }

  std::optional<PreemptionChoice> result(Set ended) const {
    PreemptionChoice choice{std::move(ended), {}, {}};
    choice.then = free_without(choice.preempted);
    auto layout = FreeCapacity(view_.topology, choice.then).place(gang_);
    if (!layout) return std::nullopt;
    choice.layout = *std::move(layout);
    return choice;
  }

  const WaitingJob& job_;
  const Gang& gang_;
  const PreemptionView& view_;
  Set across_, within_;
};

}  // namespace

std::optional<PreemptionChoice> choose_preempted(const WaitingJob& job, const Gang& gang,
                                                 const PreemptionView& view) {
  return PreemptionSearch(job, gang, view).run();
}

}  // namespace trainyard::schedule
