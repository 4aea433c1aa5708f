#include "schedule/what_if.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "schedule/changes.hpp"
#include "schedule/projection.hpp"

namespace trainyard::schedule {
namespace {

class Explainer {
 public:
  Explainer(const Snapshot& snapshot, const Policy& policy, Instant now,
            const WhatIfQuestion& question)
      : snapshot_(snapshot),
        policy_(policy),
        now_(now),
        question_(question),
        budget_(kWhatIfPlansMax, question.entries_max) {}

  WhatIf explain() {
    budget_.take(snapshot_);  // the plan itself is always made
    const Plan plan = schedule::plan(snapshot_, policy_, now_);
    for (const Start& start : plan.starts)
      if (start.job == question_.job) return {"", now_};
    WhatIf found;
    for (const Wait& wait : plan.waits)
      if (wait.job == question_.job) {
        found.reason = wait.reason.str();
        found.starts = wait.starts_by;
      }
    try_all(question_.with_changes ? changes_for(snapshot_, policy_, plan, question_)
                                   : std::vector<Change>(),
            found);
    rank(found.answers);
    found.whole = !budget_.spent();
    return found;
  }

 private:
  std::optional<Instant> projected(Snapshot snapshot) {
    return projected_start(std::move(snapshot), policy_, now_, question_.job,
                           question_.preemption_takes, budget_);
  }

  bool starts_now(const Snapshot& snapshot) {
    if (!budget_.take(snapshot)) return false;
    const Plan plan = schedule::plan(snapshot, policy_, now_);
    return std::ranges::find(plan.starts, question_.job, &Start::job) != plan.starts.end();
  }

  // Tries each change for a start now first, which costs one plan; then projects later starts.
  void try_all(const std::vector<Change>& changes, WhatIf& found) {
    std::vector<const Change*> later;
    for (const Change& change : changes) {
      if (budget_.spent()) return;
      if (starts_now(with_change(snapshot_, question_, change)))
        found.answers.push_back({change, now_});
      else
        later.push_back(&change);
    }
    if (!found.starts) found.starts = projected(snapshot_);
    for (const Change* change : later) {
      if (budget_.spent()) return;
      const auto starts = projected(with_change(snapshot_, question_, *change));
      if (starts && (!found.starts || *starts < *found.starts))
        found.answers.push_back({*change, *starts});
    }
  }

  // Returns true for changes of which only the smallest with the same start is shown.
  static bool comparable(const Change& a, const Change& b) {
    if (a.kind != b.kind) return false;
    switch (a.kind) {
      case ChangeKind::shrink_gang:
      case ChangeKind::change_type:
        return true;
      case ChangeKind::add_machines:
        return a.name == b.name;
      default:
        return false;
    }
  }
  // Compares the effort: fewer machines, a gang nearer to the requested size, a larger type.
  static bool smaller(const Change& a, const Change& b) {
    if (a.kind == ChangeKind::add_machines) return a.to < b.to;
    if (a.kind == ChangeKind::shrink_gang) return a.to > b.to;
    return size(a) > size(b);
  }
  static double size(const Change& change) { return change.share.cpus + double(change.share.gpus); }

  // Returns the start of the job that the change ends: the latest start loses the least work.
  Instant began(const Change& change) const {
    const auto running = change.kind == ChangeKind::end_job
                             ? std::ranges::find(snapshot_.running, change.job, &Running::job)
                             : snapshot_.running.end();
    return running == snapshot_.running.end() ? Instant{} : running->started;
  }

  void rank(std::vector<WhatIfAnswer>& answers) const {
    std::ranges::stable_sort(answers, [&](const WhatIfAnswer& a, const WhatIfAnswer& b) {
      if (a.starts != b.starts) return a.starts < b.starts;
      if (a.change.kind != b.change.kind) return a.change.kind < b.change.kind;
      if (comparable(a.change, b.change)) return smaller(a.change, b.change);
      return began(a.change) > began(b.change);
    });
    std::vector<WhatIfAnswer> kept;
    std::map<ChangeKind, size_t> of_kind;
    for (WhatIfAnswer& answer : answers) {
      const bool needless = std::ranges::any_of(kept, [&](const WhatIfAnswer& better) {
        return comparable(better.change, answer.change) && smaller(better.change, answer.change);
      });
      if (!needless && of_kind[answer.change.kind]++ < kAnswersOfKindMax)
        kept.push_back(std::move(answer));
    }
    answers = std::move(kept);
  }

  const Snapshot& snapshot_;
  const Policy& policy_;
  const Instant now_;
  const WhatIfQuestion& question_;
  PlanBudget budget_;
};

}  // namespace

WhatIf what_if(const Snapshot& snapshot, const Policy& policy, Instant now,
               const WhatIfQuestion& question) {
  return Explainer(snapshot, policy, now, question).explain();
}

}  // namespace trainyard::schedule
