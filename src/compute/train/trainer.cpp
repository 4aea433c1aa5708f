#include "train/trainer.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "base/check.hpp"
#include "base/fnv.hpp"
#include "base/text.hpp"
#include "contract/log_line.hpp"
#include "train/image.hpp"

namespace trainyard::train {
namespace {

// Further sums, in the same allreduce as the gradient: one message instead of two.
enum Extra : size_t { kLoss, kCorrect, kStops, kExtras };

}  // namespace

Result<Trainer> Trainer::make(Settings settings, Rows rows, collectives::Group& group, Clock& clock,
                              std::function<void(std::string_view line)> print,
                              std::optional<local_sgd::LocalSgdOptions> regions) {
  if (rows.all() == 0)
    return invalid("channel " + settings.channel +
                   " has no rows on any host: upload CSV files to it");
  // batch_size counts the rows of all regions together.
  settings.batch_size = std::max<int64_t>(1, settings.batch_size / settings.regions.all());
  if (settings.classes == 0) settings.classes = std::max(2, rows.largest_label() + 1);
  if (rows.largest_label() >= settings.classes) {
    return invalid("label " + std::to_string(rows.largest_label()) +
                   " is out of range for hyperparameter classes " +
                   std::to_string(settings.classes) + ": labels count from 0");
  }
  if (settings.image_width > 0 && rows.columns() % size_t(settings.image_width) != 0) {
    return invalid(std::to_string(rows.columns()) + " features per row cannot be images of " +
                   std::to_string(settings.image_width) +
                   " pixels per line: check hyperparameter image_width");
  }
  Trainer trainer(std::move(settings), std::move(rows), group, clock, std::move(print));
  // Equal seeds give equal parameters, but the machines of the ranks may round differently.
  TRY(group.broadcast(std::as_writable_bytes(std::span(trainer.model_.parameters)), 0));
  if (regions) TRY(trainer.join_regions(*std::move(regions)));
  return trainer;
}

Trainer::Trainer(Settings settings, Rows rows, collectives::Group& group, Clock& clock,
                 std::function<void(std::string_view line)> print)
    : settings_(std::move(settings)),
      rows_(std::move(rows)),
      group_(group),
      clock_(clock),
      print_(std::move(print)),
      model_{{rows_.columns(), size_t(settings_.hidden), size_t(settings_.classes)},
             settings_.input_scale,
             size_t(settings_.image_width),
             {}},
      optimizer_(settings_.optimizer, model_.shape.parameters()),
      sums_(model_.shape.parameters() + kExtras),
      gradient_(model_.shape.parameters()),
      input_(rows_.columns()),
      moved_(rows_.columns()) {
  model_.parameters = initial_parameters(model_.shape, settings_.seed);
  batches_ = (int64_t(rows_.all()) + settings_.batch_size - 1) / settings_.batch_size;
  steps_ = batches_ * settings_.epochs;
}

void Trainer::print_begin() {
  std::string where;
  if (settings_.regions.any()) {
    where = contract::format_line(
        " region=%lld regions=%lld region_steps=%lld", (long long)settings_.regions.own,
        (long long)settings_.regions.all(), (long long)settings_.regions.steps);
  }
  print_(contract::format_line(
      "training inputs=%zu hidden=%zu classes=%zu parameters=%zu rows=%llu batch_size=%lld "
      "ranks=%d%s",
      model_.shape.inputs, model_.shape.hidden, model_.shape.classes, model_.shape.parameters(),
      (unsigned long long)rows_.all(), (long long)settings_.batch_size, group_.size(),
      where.c_str()));
}

Result<void> Trainer::print_epoch(int64_t epoch, const Progress& progress) {
  if (!std::isfinite(progress.loss)) {
    return invalid(contract::format_line(
        "the loss is NaN or infinite after epoch %lld: try a smaller learning_rate",
        (long long)epoch));
  }
  const double seconds =
      std::max(std::chrono::duration<double>(clock_.monotonic() - progress.began).count(), 1e-9);
  if (group_.rank() == 0) {
    print_(contract::format_line(
        "epoch=%lld step=%lld train_loss=%.4f train_accuracy=%.4f images_per_second=%.0f",
        (long long)epoch, (long long)steps_done_, progress.loss / progress.rows,
        progress.correct / progress.rows, progress.rows / seconds));
  }
  return ok();
}

Result<bool> Trainer::run(const std::atomic<bool>& stop) {
  if (group_.rank() == 0) print_begin();
  int64_t epoch = 0;
  std::vector<uint32_t> order;
  Progress progress;
  bool stopped = false;
  while (steps_done_ < steps_ && !stopped) {
    // A region that was away may continue within an epoch.
    if (steps_done_ / batches_ + 1 != epoch) {
      epoch = steps_done_ / batches_ + 1;
      order = shuffled_rows(rows_.all(), settings_.seed, uint64_t(epoch));
      progress = {};
      progress.began = clock_.monotonic();
    }
    const size_t begin = size_t(steps_done_ % batches_) * size_t(settings_.batch_size);
    const size_t size = std::min(size_t(settings_.batch_size), order.size() - begin);
    stopped = TRY(step(std::span(order).subspan(begin, size), epoch, stop, progress));
    if (!stopped && steps_done_ % batches_ == 0) TRY(print_epoch(epoch, progress));
    const bool ends_round = steps_done_ % settings_.regions.steps == 0 || steps_done_ == steps_;
    if (!stopped && settings_.regions.any() && ends_round) stopped = TRY(average_regions());
  }
  if (stopped && group_.rank() == 0)
    print_(contract::format_line("stopped epoch=%lld step=%lld", (long long)epoch,
                                 (long long)steps_done_));
  TRY(compare_ranks());
  if (!stopped) TRY(leave_regions());
  return !stopped;
}

Result<bool> Trainer::step(std::span<const uint32_t> batch, int64_t epoch, bool stop,
                           Progress& progress) {
  // sums_: gradient (parameters) | loss, correct, stops
  std::fill(sums_.begin(), sums_.end(), 0.0);
  const auto slopes = std::span(sums_).first(model_.shape.parameters());
  const auto extras = std::span(sums_).last(kExtras);
  Progress own;
  for (const uint32_t row : batch) {
    if (rows_.is_own(row)) add_row(row, epoch, slopes, own);
  }
  extras[kLoss] = own.loss;
  extras[kCorrect] = own.correct;
  extras[kStops] = stop ? 1 : 0;

  TRY(group_.allreduce(sums_).in("step " + std::to_string(steps_done_ + 1)));

  for (size_t i = 0; i < slopes.size(); ++i) gradient_[i] = float(slopes[i] / double(batch.size()));
  optimizer_.step(model_.parameters, gradient_,
                  cosine_rate(settings_.learning_rate, steps_done_, steps_));
  ++steps_done_;
  progress.loss += extras[kLoss];
  progress.correct += extras[kCorrect];
  progress.rows += double(batch.size());
  rows_since_round_ += double(batch.size());
  return extras[kStops] > 0;
}

void Trainer::add_row(uint64_t row, int64_t epoch, std::span<double> gradient, Progress& progress) {
  const auto features = rows_.features(row);
  for (size_t i = 0; i < features.size(); ++i) input_[i] = features[i] / settings_.input_scale;
  std::span<const float> input = input_;
  if (settings_.shift > 0 || settings_.rotate > 0) {
    // The motion depends on seed, epoch and row number, not on the host that computes the row.
    const Motion motion = random_motion(settings_.shift, settings_.rotate,
                                        mix(settings_.seed, uint64_t(epoch), row + 1));
    move_image(input_, size_t(settings_.image_width), motion, moved_);
    input = moved_;
  }
  const RowLoss loss =
      add_gradient(model_.shape, model_.parameters, input, rows_.label(row), gradient, workspace_);
  progress.loss += double(loss.loss);
  progress.correct += loss.correct ? 1 : 0;
}

Result<void> Trainer::compare_ranks() {
  const uint64_t digest = fnv1a(std::as_bytes(std::span(model_.parameters)));
  const std::string mine = contract::format_line("%016llx", (unsigned long long)digest);
  const auto all = TRY(group_.all_gather(mine));
  if (std::set<std::string>(all.begin(), all.end()).size() != 1) {
    return internal("the ranks hold different weights after the same steps");
  }
  if (group_.rank() == 0)
    print_(contract::format_line("trained step=%lld ranks=%d weights=%s the same on all ranks",
                                 (long long)steps_done_, group_.size(), mine.c_str()));
  return ok();
}

}  // namespace trainyard::train
