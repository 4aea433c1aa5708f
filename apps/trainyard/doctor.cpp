#include "trainyard/doctor.hpp"

#include <cstdio>

#include "host/enclosure.hpp"
#include "host/machine.hpp"
#include "launch/local/local.hpp"
#include "trainyard/data_directory.hpp"
#include "trainyard/terminal.hpp"

namespace trainyard::apps {
namespace {

std::string mark(host::Finding::State state) {
  switch (state) {
    case host::Finding::State::ok:
      return paint(Paint::green, "ok     ");
    case host::Finding::State::limited:
      return paint(Paint::yellow, "limited");
    case host::Finding::State::missing:
      return paint(Paint::red, "missing");
  }
  return "";
}

void print_findings(const std::string& data_directory) {
  // An ordinary user's server works in namespaces of its own, so it is there that things are tried. That it cannot
  // make them is the first finding.
  if (!host::is_root())
    if (auto entered = host::enter_passing_enclosure(); !entered)
      std::printf("%s\n", entered.error().message.c_str());
  const auto findings = host::examine_machine(data_directory);
  int missing = 0;
  for (const auto& finding : findings) {
    std::printf("%s  %-22s %s\n", mark(finding.state).c_str(), finding.name.c_str(),
                finding.sentence.c_str());
    if (!finding.remedy.empty())
      std::printf("         %-22s %s\n", "", paint(Paint::dim, finding.remedy).c_str());
    missing += finding.state == host::Finding::State::missing;
  }
  std::printf("%s\n", missing == 0 ? "This machine can run jobs."
                                   : "What is missing above keeps jobs from running here.");
}

}  // namespace

Result<void> doctor(const std::string& data_directory, bool clean) {
  if (!clean) {
    print_findings(data_directory);
    return {};
  }
  const auto data = TRY(DataDirectory::open(data_directory).in("sweeping"));
  const auto gone = TRY(launch::sweep(data.path()));
  for (const auto& sentence : gone) std::printf("%s\n", sentence.c_str());
  std::printf("%s\n", gone.empty() ? "Nothing was left behind." : "The rest is clean.");
  return {};
}

}  // namespace trainyard::apps
