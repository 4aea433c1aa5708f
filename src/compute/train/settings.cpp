#include "train/settings.hpp"

#include <functional>
#include <limits>
#include <vector>

#include "base/json.hpp"
#include "base/text.hpp"
#include "contract/hyperparameters.hpp"
#include "train/model.hpp"

namespace trainyard::train {
namespace {

using Read = std::function<Result<void>(Settings&, const std::string&)>;

struct Hyperparameter {
  std::string name;
  Read read;
};

template <class Number>
Read number(Number Settings::*member, double least, double most) {
  return [=](Settings& settings, const std::string& text) -> Result<void> {
    const double value = TRY(parse_double(text));
    if (!(value >= least && value <= most) ||
        (std::is_integral_v<Number> && value != double(Number(value)))) {
      return invalid("invalid value '" + text + "': must be " +
                     (std::is_integral_v<Number> ? "an integer" : "a number") + " from " +
                     Json(least).dump() + " to " + Json(most).dump());
    }
    settings.*member = Number(value);
    return ok();
  };
}

// Reads a number into a member of a nested struct.
template <class Part, class Number>
Read number_of(Part Settings::*part, Number Part::*member, double least, double most) {
  return [=](Settings& settings, const std::string& text) -> Result<void> {
    const double value = TRY(parse_double(text));
    if (!(value >= least && value <= most) ||
        (std::is_integral_v<Number> && value != double(Number(value)))) {
      return invalid("invalid value '" + text + "': must be " +
                     (std::is_integral_v<Number> ? "an integer" : "a number") + " from " +
                     Json(least).dump() + " to " + Json(most).dump());
    }
    settings.*part.*member = Number(value);
    return ok();
  };
}

Read outer_number(float local_sgd::OuterSettings::*member, double least, double most) {
  return [=](Settings& settings, const std::string& text) -> Result<void> {
    Settings read;
    TRY(number(&Settings::learning_rate, least, most)(read, text));
    settings.regions.outer.*member = read.learning_rate;
    return ok();
  };
}

// Parses "eu.example:7840,us.example:7840".
Result<void> read_leaders(Settings& settings, const std::string& text) {
  std::vector<collectives::Endpoint> leaders;
  for (const std::string_view each : split(text, ',')) {
    const size_t colon = each.rfind(':');
    if (colon == std::string_view::npos || colon == 0)
      return invalid("invalid leader '" + std::string(each) + "': must be HOST:PORT");
    const auto port = parse_int(each.substr(colon + 1));
    if (!port || *port < 1 || *port > 65535)
      return invalid("invalid leader '" + std::string(each) + "': the port must be 1 to 65535");
    leaders.push_back({std::string(each.substr(0, colon)), uint16_t(*port)});
  }
  settings.regions.leaders = std::move(leaders);
  return ok();
}

const std::vector<Hyperparameter>& hyperparameters() {
  static const std::vector<Hyperparameter> table = {
      {"batch_size", number(&Settings::batch_size, 1, 1 << 20)},
      {"channel",
       [](Settings& settings, const std::string& text) -> Result<void> {
         if (text.empty() || text.find('/') != std::string::npos || text.starts_with('.')) {
           return invalid("invalid channel name '" + text +
                          "': must not be empty, begin with '.' or contain '/'");
         }
         settings.channel = text;
         return ok();
       }},
      {"classes", number(&Settings::classes, 0, 1 << 20)},
      {"epochs", number(&Settings::epochs, 1, kEpochsMax)},
      {"hidden", number(&Settings::hidden, 1, 1 << 16)},
      {"image_width", number(&Settings::image_width, 0, 1 << 16)},
      {"input_scale", number(&Settings::input_scale, kInputScaleMin, kInputScaleMax)},
      {"learning_rate", number(&Settings::learning_rate, 0, 1000)},
      {"momentum", number_of(&Settings::optimizer, &OptimizerSettings::momentum, 0, 0.9999)},
      {"optimizer",
       [](Settings& settings, const std::string& text) -> Result<void> {
         settings.optimizer.method = TRY(parse_method(text));
         return ok();
       }},
      {"port", number(&Settings::port, 1, 65535)},
      {"region", number_of(&Settings::regions, &LocalSgdSettings::own, 0, 63)},
      {"region_coding",
       [](Settings& settings, const std::string& text) -> Result<void> {
         settings.regions.coding = TRY(local_sgd::parse_coding(text));
         return ok();
       }},
      {"region_encrypt",
       [](Settings& settings, const std::string& text) -> Result<void> {
         if (text != "true" && text != "false")
           return invalid("invalid value '" + text + "': must be true or false");
         settings.regions.encrypt = text == "true";
         return ok();
       }},
      {"region_leaders", read_leaders},
      {"region_learning_rate", outer_number(&local_sgd::OuterSettings::learning_rate, 0, 10)},
      {"region_momentum", outer_number(&local_sgd::OuterSettings::momentum, 0, 0.9999)},
      {"region_port", number_of(&Settings::regions, &LocalSgdSettings::port, 1, 65535)},
      {"region_secret",
       [](Settings& settings, const std::string& text) -> Result<void> {
         settings.regions.secret = text;
         return ok();
       }},
      {"region_steps", number_of(&Settings::regions, &LocalSgdSettings::steps, 1, 1 << 20)},
      {"regions", number_of(&Settings::regions, &LocalSgdSettings::count, 1, 64)},
      {"rotate", number(&Settings::rotate, 0, 180)},
      // 2^53: JSON numbers are exact up to it
      {"seed", number(&Settings::seed, 0, 9007199254740992)},
      {"shift", number(&Settings::shift, 0, 1 << 16)},
      {"weight_decay", number_of(&Settings::optimizer, &OptimizerSettings::weight_decay, 0, 1)},
  };
  return table;
}

}  // namespace

Result<Settings> parse_settings(const std::map<std::string, std::string>& given) {
  Settings settings;
  for (const auto& [name, text] : given) {
    if (contract::belongs_to_the_sdk(name)) continue;
    const Hyperparameter* known = nullptr;
    std::string names;
    for (const Hyperparameter& each : hyperparameters()) {
      if (each.name == name) known = &each;
      names += (names.empty() ? "" : ", ") + each.name;
    }
    if (!known)
      return invalid("unknown hyperparameter '" + shorten(name, 64) + "'; valid names are " +
                     names);
    TRY(known->read(settings, contract::without_quotes(text)).in("hyperparameter " + name));
  }
  if ((settings.shift > 0 || settings.rotate > 0) && settings.image_width == 0) {
    return invalid("hyperparameters shift and rotate need image_width: they apply to images only");
  }
  const LocalSgdSettings& regions = settings.regions;
  if (regions.count > 1 && !regions.leaders.empty()) {
    return invalid(
        "hyperparameters regions and region_leaders are mutually exclusive: set regions to split "
        "this job, or region_leaders to "
        "join other jobs");
  }
  if (!regions.leaders.empty() && (regions.secret.empty() || regions.own >= regions.all())) {
    return invalid(
        "hyperparameter region_leaders needs region_secret, and region must be below the number of "
        "leaders");
  }
  return settings;
}

}  // namespace trainyard::train
