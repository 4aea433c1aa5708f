// EarlyStopping decides after each epoch whether the training ends early: it does when the accuracy
// has not grown by more than a tolerance for a number of epochs.
//
// Threads: confined to one. Errors: none.
#pragma once

#include <cstdint>

namespace trainyard::algorithms {

class EarlyStopping {
 public:
  struct Settings {
    bool enabled = false;
    int64_t min_epochs = 10;
    int64_t epochs_without_growth_max = 5;
    double tolerance = 0;  // relative growth up to this does not count as growth
  };
  explicit EarlyStopping(Settings settings) : settings_(settings) {}

  // Returns true if the training ends after this epoch. Requires: one call for each epoch, in
  // order.
  bool ends_after(double accuracy) {
    ++epochs_;
    if (epochs_ == 1 || accuracy > best_ * (1 + settings_.tolerance)) {
      best_ = accuracy;
      epochs_without_growth_ = 0;
    } else {
      ++epochs_without_growth_;
    }
    return settings_.enabled && epochs_ >= settings_.min_epochs &&
           epochs_without_growth_ >= settings_.epochs_without_growth_max;
  }

 private:
  Settings settings_;
  int64_t epochs_ = 0;
  int64_t epochs_without_growth_ = 0;
  double best_ = 0;
};

}  // namespace trainyard::algorithms
