#include "local_sgd/replica.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.hpp"
#include "base/fnv.hpp"

namespace trainyard::local_sgd {
namespace {

std::string_view bytes_of(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

}  // namespace

Replica::Replica(std::vector<float> parameters, std::string charter, OuterSettings outer,
                 Coding coding)
    : optimiser_(outer),
      coding_(coding),
      parameters_(std::move(parameters)),
      state_{std::vector<float>(parameters_.size())},
      charter_(std::move(charter)),
      own_rest_(parameters_.size()),
      mean_rest_(parameters_.size()) {
  update_digest();
}

void Replica::update_digest() {
  digest_ = fnv1a(charter_);
  digest_ = fnv1a(std::string_view(reinterpret_cast<const char*>(&round_), sizeof round_), digest_);
  digest_ = fnv1a(bytes_of(parameters_), digest_);
  digest_ = fnv1a(bytes_of(state_.velocity), digest_);
}

std::string Replica::encode_with(std::vector<float>& rest, std::vector<float> values) const {
  for (size_t i = 0; i < values.size(); ++i) values[i] += rest[i];
  std::string bytes = encode(coding_, values);
  const auto kept = decode(coding_, bytes, values.size());
  CHECK(bool(kept), "an encoded gradient decodes");
  for (size_t i = 0; i < values.size(); ++i) {
    rest[i] = values[i] - (*kept)[i];
    if (!std::isfinite(rest[i])) rest[i] = 0;  // out of the coding's range: dropped
  }
  return bytes;
}

Result<Offer> Replica::offer(std::span<const float> trained, double weight) {
  CHECK(trained.size() == parameters_.size(), "trained must have the size of parameters()");
  std::vector<float> gradient(trained.size());
  for (size_t i = 0; i < trained.size(); ++i) {
    gradient[i] = parameters_[i] - trained[i];
    if (!std::isfinite(gradient[i]))
      return invalid("parameter " + std::to_string(i) +
                     " is NaN or infinite: try a smaller learning rate");
  }
  return Offer{round_ + 1, digest_, weight, coding_, encode_with(own_rest_, std::move(gradient))};
}

Result<Averaged> Replica::average(std::span<const Offer> offers) {
  std::vector<Share> shares;
  for (const Offer& offer : offers) {
    if (!(offer.weight >= 0) || !std::isfinite(offer.weight))
      return corrupt("invalid weight of an offer: it must be finite and not negative");
    Share share;
    share.weight = offer.weight;
    share.gradient = TRY(decode(offer.coding, offer.gradient, parameters_.size()).in("an offer"));
    shares.push_back(std::move(share));
  }
  return Averaged{round_ + 1, {}, coding_, encode_with(mean_rest_, weighted_mean(shares))};
}

Result<void> Replica::apply(const Averaged& averaged) {
  CHECK(averaged.round == round_ + 1, "averaged must belong to the next round");
  const auto gradient =
      TRY(decode(averaged.coding, averaged.gradient, parameters_.size()).in("a mean"));
  optimiser_.step(parameters_, state_, gradient);
  ++round_;
  update_digest();
  return ok();
}

Snapshot Replica::snapshot(uint64_t digest_there) const {
  if (digest_there == digest_) return {round_, {}, {}, {}, {}};
  return {
      round_, {}, charter_, encode(Coding::f32, parameters_), encode(Coding::f32, state_.velocity)};
}

Result<void> Replica::restore(const Snapshot& snapshot) {
  std::fill(own_rest_.begin(), own_rest_.end(), 0.0f);
  std::fill(mean_rest_.begin(), mean_rest_.end(), 0.0f);
  if (snapshot.parameters.empty() && snapshot.round == round_) return ok();
  auto parameters =
      TRY(decode(Coding::f32, snapshot.parameters, parameters_.size()).in("a snapshot"));
  auto velocity = TRY(decode(Coding::f32, snapshot.velocity, parameters_.size()).in("a snapshot"));
  parameters_ = std::move(parameters);
  state_.velocity = std::move(velocity);
  charter_ = snapshot.charter;
  round_ = snapshot.round;
  update_digest();
  return ok();
}

bool Replica::equals(const Snapshot& snapshot) const {
  return snapshot.round == round_ && snapshot.charter == charter_ &&
         snapshot.parameters == encode(Coding::f32, parameters_) &&
         snapshot.velocity == encode(Coding::f32, state_.velocity);
}

}  // namespace trainyard::local_sgd
