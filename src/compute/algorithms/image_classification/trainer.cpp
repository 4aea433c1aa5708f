#include "algorithms/image_classification/trainer.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "contract/log_line.hpp"

namespace trainyard::algorithms {
namespace {

// Values of an epoch, which are summed over the ranks in one allreduce.
enum Extra : size_t { kLoss, kCorrect, kCorrectK, kStops, kExtras };

parallel::Schedule schedule_of(const ClassifierSettings& settings, int64_t steps_of_epoch) {
  parallel::Schedule schedule;
  schedule.base = settings.learning_rate;
  schedule.factor = settings.lr_scheduler_factor;
  schedule.decay = parallel::Decay::milestones;
  for (const int64_t epoch : settings.lr_scheduler_step)
    schedule.milestones.push_back(epoch * steps_of_epoch);
  return schedule;
}

Preparation preparation_of(const ClassifierSettings& settings) {
  return {settings.image_shape, settings.resize, settings.augmentation};
}

double correct_in(const at::Tensor& logits, const at::Tensor& labels) {
  return logits.argmax(1).eq(labels).sum().item().toDouble();
}

double correct_in_first(const at::Tensor& logits, const at::Tensor& labels, int64_t k) {
  const at::Tensor first = std::get<1>(logits.topk(k, 1));
  return first.eq(labels.unsqueeze(1)).sum().item().toDouble();
}

}  // namespace

Result<std::unique_ptr<ClassifierTrainer>> ClassifierTrainer::make(
    TrainerOptions options, Channel train, std::optional<Channel> validation,
    std::unique_ptr<ResNet> network, collectives::Group& group, Clock& clock) {
  if (options.settings.early_stopping && !validation)
    return invalid("hyperparameter early_stopping needs the channel 'validation'");
  std::unique_ptr<ClassifierTrainer> trainer(
      new ClassifierTrainer(std::move(options), std::move(train), std::move(validation),
                            std::move(network), group, clock));
  std::vector<at::Tensor> parameters;
  for (const auto& each : trainer->network_->parameters()) parameters.push_back(each.tensor);
  trainer->parallel_ = TRY(parallel::DataParallel::make(std::move(parameters), group));
  return trainer;
}

ClassifierTrainer::ClassifierTrainer(TrainerOptions options, Channel train,
                                     std::optional<Channel> validation,
                                     std::unique_ptr<ResNet> network, collectives::Group& group,
                                     Clock& clock)
    : options_(std::move(options)),
      train_(std::move(train)),
      validation_(std::move(validation)),
      network_(std::move(network)),
      group_(group),
      clock_(clock),
      optimizer_(std::make_unique<parallel::Optimizer>(options_.settings.optimizer,
                                                       network_->parameters())),
      steps_of_epoch_(
          steps_of_epoch(train_.shares, options_.settings.mini_batch_size, options_.parts)),
      early_stopping_({options_.settings.early_stopping,
                       options_.settings.early_stopping_min_epochs,
                       options_.settings.early_stopping_epochs_max,
                       options_.settings.early_stopping_tolerance}) {
  schedule_ = schedule_of(options_.settings, steps_of_epoch_);
}

ClassifierTrainer::~ClassifierTrainer() {
  if (ahead_.valid()) ahead_.wait();
}

void ClassifierTrainer::print(const std::string& line) const {
  if (group_.rank() == 0) options_.print(line);
}

// -- batches, one ahead

Result<Batch> ClassifierTrainer::read(Position position) {
  if (order_epoch_ != position.epoch) {
    order_.emplace(train_.shares, options_.seed, position.epoch);
    order_epoch_ = position.epoch;
  }
  return read_batch(train_.collection,
                    order_->batch(position.step, position.part, options_.parts,
                                  options_.settings.mini_batch_size),
                    preparation_of(options_.settings),
                    seed_of(options_.seed, uint64_t(position.epoch), 1));
}

std::optional<ClassifierTrainer::Position> ClassifierTrainer::after(Position position) const {
  if (++position.part < options_.parts) return position;
  position.part = 0;
  if (++position.step < steps_of_epoch_) return position;
  position.step = 0;
  if (++position.epoch < options_.settings.epochs) return position;
  return std::nullopt;
}

Result<Batch> ClassifierTrainer::next_batch(Position position) {
  Result<Batch> batch = ahead_.valid() ? ahead_.get() : read(position);
  if (const auto next = after(position))
    ahead_ = std::async(std::launch::async, [this, next = *next] { return read(next); });
  return batch;
}

// -- one step

Result<void> ClassifierTrainer::add_part(const Batch& batch, Progress& own) {
  const at::Tensor logits = network_->forward(batch.images, true);
  const at::Tensor loss = at::cross_entropy_loss(logits, batch.labels);
  loss.backward();
  const at::NoGradGuard no_gradients;
  own.loss += loss.item().toDouble();
  own.correct += correct_in(logits, batch.labels);
  if (options_.settings.top_k > 0)
    own.correct_k += correct_in_first(logits, batch.labels, options_.settings.top_k);
  return ok();
}

Result<bool> ClassifierTrainer::step(int64_t epoch, int64_t step, bool stop, Progress& progress) {
  const int64_t passes = options_.parts * group_.size();
  parallel_->begin(int(options_.parts));
  Progress own;
  for (int64_t part = 0; part < options_.parts; ++part) {
    const Batch batch = TRY(next_batch({epoch, step, part}));
    TRY(add_part(batch, own));
    last_batch_ = train_.collection.name(batch.indices.front()) + " to " +
                  train_.collection.name(batch.indices.back());
  }
  double extras[kExtras] = {own.loss, own.correct, own.correct_k, stop ? 1.0 : 0.0};
  TRY(group_.allreduce(network_->collected()));
  TRY(group_.allreduce(std::span<double>(extras)));
  TRY(parallel_->finish());
  const double rate = schedule_.rate(steps_done_);
  TRY(check_loss(extras[kLoss], epoch, rate));
  network_->apply_statistics(passes);
  optimizer_->step(rate, 1.0 / double(passes));
  ++steps_done_;
  progress.loss += extras[kLoss] / double(passes);
  progress.correct += extras[kCorrect];
  progress.correct_k += extras[kCorrectK];
  progress.images += double(passes * options_.settings.mini_batch_size);
  return extras[kStops] > 0;
}

Result<void> ClassifierTrainer::check_loss(double loss, int64_t epoch, double rate) const {
  if (std::isfinite(loss)) return ok();
  return invalid(contract::format_line(
                     "the loss is %s in epoch %lld, step %lld (learning_rate %g, last batch ",
                     std::isnan(loss) ? "NaN" : "infinite", (long long)epoch,
                     (long long)steps_done_, rate) +
                 last_batch_ + "): try a smaller learning_rate");
}

// -- epochs

Result<double> ClassifierTrainer::score() {
  const at::NoGradGuard no_gradients;
  const std::vector<uint32_t> images = scored_images(validation_->shares);
  Preparation preparation = preparation_of(options_.settings);
  preparation.augmentation = Augmentation::none;
  const auto size = size_t(options_.settings.mini_batch_size);
  double sums[2] = {0, double(images.size())};
  for (size_t begin = 0; begin < images.size(); begin += size) {
    const auto first = images.begin() + ptrdiff_t(begin);
    const auto last = images.begin() + ptrdiff_t(std::min(begin + size, images.size()));
    const Batch batch = TRY(read_batch(validation_->collection, {first, last}, preparation, {}));
    sums[0] += correct_in(network_->forward(batch.images, false), batch.labels);
  }
  TRY(group_.allreduce(std::span<double>(sums)));
  return sums[0] / sums[1];
}

Result<void> ClassifierTrainer::save_if_due(int64_t epoch, bool best) {
  if (group_.rank() != 0) return ok();
  if (best) TRY(options_.save(*network_, 0));
  const int64_t frequency = options_.settings.checkpoint_frequency;
  if (frequency > 0 && epoch % frequency == 0) TRY(options_.save(*network_, epoch));
  return ok();
}

// Returns true if the training ends early.
Result<bool> ClassifierTrainer::end_epoch(int64_t epoch, const Progress& progress) {
  const auto number = (long long)epoch;
  print(contract::format_line("Epoch[%lld] Train-accuracy=%.6f", number,
                              progress.correct / progress.images));
  if (options_.settings.top_k > 0)
    print(contract::format_line("Epoch[%lld] Train-top_k_accuracy_%lld=%.6f", number,
                                (long long)options_.settings.top_k,
                                progress.correct_k / progress.images));
  print(contract::format_line("Epoch[%lld] Train-cross-entropy=%.6f", number,
                              progress.loss / double(steps_of_epoch_)));
  print(contract::format_line(
      "Epoch[%lld] Time cost=%.3f", number,
      std::chrono::duration<double>(clock_.monotonic() - progress.began).count()));
  if (!validation_) {
    TRY(save_if_due(epoch + 1, epoch + 1 == options_.settings.epochs));
    return false;
  }
  const double accuracy = TRY(score());
  print(contract::format_line("Epoch[%lld] Validation-accuracy=%.6f", number, accuracy));
  const bool best = best_accuracy_ < accuracy;
  if (best) {
    best_accuracy_ = accuracy;
    print(contract::format_line("Storing the best model with validation accuracy: %.6f", accuracy));
  }
  validation_accuracy_ = accuracy;
  TRY(save_if_due(epoch + 1, best));
  return early_stopping_.ends_after(accuracy);
}

void ClassifierTrainer::print_batch(int64_t epoch, int64_t step, const Progress& progress) {
  const double seconds =
      std::max(1e-9, std::chrono::duration<double>(clock_.monotonic() - progress.began).count());
  print(contract::format_line("Epoch[%lld] Batch [%lld]\tSpeed: %.2f samples/sec\taccuracy=%.6f",
                              (long long)epoch, (long long)step, progress.images / seconds,
                              progress.correct / progress.images));
}

Result<void> ClassifierTrainer::run(const std::atomic<bool>& stop) {
  for (int64_t epoch = 0; epoch < options_.settings.epochs; ++epoch) {
    Progress progress;
    progress.began = clock_.monotonic();
    for (int64_t at = 0; at < steps_of_epoch_; ++at) {
      if (TRY(step(epoch, at, stop, progress))) {
        print(contract::format_line("stopped in epoch %lld after step %lld", (long long)epoch,
                                    (long long)steps_done_));
        if (group_.rank() == 0 && best_accuracy_ < 0) TRY(options_.save(*network_, 0));
        return ok();
      }
      if (at > 0 && at % kBatchesPerLine == 0) print_batch(epoch, at, progress);
    }
    if (TRY(end_epoch(epoch, progress))) {
      print(contract::format_line("Early stopping after epoch %lld", (long long)epoch));
      return ok();
    }
  }
  return ok();
}

}  // namespace trainyard::algorithms
