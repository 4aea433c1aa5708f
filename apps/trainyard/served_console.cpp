#include "trainyard/served_console.hpp"

#include "base/log.hpp"
#include "os/process.hpp"

namespace trainyard::apps {

void ServedConsole::prepare(api::Services& services, control::ControlPlane& control) {
  auto assets = api::console::Assets::read(os::program_directory() + "/console");
  if (!assets)
    return log(Level::info, "serve", "the console is not served",
               {{"why", assets.error().message}});
  assets_ = std::make_unique<api::console::Assets>(*std::move(assets));
  services.issue_console_token = [this](const api::Context& context) {
    return sessions_.issue_token(api::console::signed_in_by(context), clock_.now());
  };
  control.watch(
      {[this](const auto& job) { feed_.publish(job->key.region, job->key.name); }, [] {}});
}

net::Handler& ServedConsole::open(const api::Settings& settings, const api::Services& services,
                                  net::Handler& api) {
  if (!assets_) return api;
  console_ =
      api::console::make_console({settings, services, sessions_, feed_, api}, std::move(*assets_));
  assets_.reset();
  return *console_;
}

void ServedConsole::stop() {
  if (console_) console_->stop();
}

}  // namespace trainyard::apps
