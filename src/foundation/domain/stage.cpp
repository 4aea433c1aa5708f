#include "domain/stage.hpp"

namespace trainyard::domain {

Stage stage_of(const Job& job) {
  switch (job.state) {
    case JobState::waiting:
      if (!job.awaits.empty()) return Stage::pending;
      return job.is_array() ? Stage::submitted : Stage::runnable;
    case JobState::active:
    case JobState::stopping:
      if (job.is_array()) return Stage::pending;  // while children run
      return job.attempt() && job.attempt()->training_started ? Stage::running : Stage::starting;
    case JobState::completed:
      return Stage::succeeded;
    case JobState::failed:
    case JobState::stopped:
      break;
  }
  return Stage::failed;
}

std::vector<JobState> states_of(Stage stage) {
  switch (stage) {
    case Stage::submitted:
      return {};
    case Stage::pending:
    case Stage::runnable:
      return {JobState::waiting};
    case Stage::starting:
    case Stage::running:
      return {JobState::active, JobState::stopping};
    case Stage::succeeded:
      return {JobState::completed};
    case Stage::failed:
      break;
  }
  return {JobState::failed, JobState::stopped};
}

}  // namespace trainyard::domain
