#include "launch/slurm/unconfirmed_submissions.hpp"

namespace trainyard::launch {

// A slurmctld that hung carries out what it had received, at the same time as it answers: only the
// second answer without the job is believed.
void UnconfirmedSubmissions::apply(uint64_t changes,
                                   const std::function<bool(const domain::AttemptId&)>& is_listed,
                                   const std::function<uint64_t()>& note_change) {
  for (auto each = all_.begin(); each != all_.end();) {
    auto& [attempt, submission] = *each;
    const bool is_old = submission.change <= changes;
    if (is_listed(attempt) || (is_old && submission.was_absent)) {
      each = all_.erase(each);
      continue;
    }
    if (is_old) submission = {note_change(), true};
    ++each;
  }
}

}  // namespace trainyard::launch
