#include "schedule/words.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace trainyard::schedule {
namespace {

constexpr double kGib = 1024.0 * 1024.0 * 1024.0;
constexpr size_t kHoldersMax = 8;  // named in a sentence; it stays one that can be read

// As few digits as say it: "8", "0.5", "23.5".
std::string number(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  std::string shown(text);
  while (shown.find('.') != std::string::npos && (shown.back() == '0' || shown.back() == '.')) {
    const bool point = shown.back() == '.';
    shown.pop_back();
    if (point) break;
  }
  return shown;
}

double rounded_up(double value) { return std::ceil(value * 1000 - 1e-6) / 1000; }
double rounded_down(double value) { return std::floor(value * 1000 + 1e-6) / 1000; }

std::string_view unit(Resource resource) {
  switch (resource) {
    case Resource::cpus:
      return "vCPU";
    case Resource::memory:
      return "GiB of memory";
    case Resource::gpus:
      return "GPU";
  }
  return "";
}

std::string holders(const std::string& machine, Resource resource, const std::vector<Held>& held) {
  std::vector<std::pair<std::string, double>> sums;  // in the order they came
  for (const Held& each : held) {
    if (each.machine != machine || amount(each.share, resource) <= 0) continue;
    const auto found = std::ranges::find(sums, each.holder, &std::pair<std::string, double>::first);
    if (found == sums.end())
      sums.emplace_back(each.holder, amount(each.share, resource));
    else
      found->second += amount(each.share, resource);
  }
  if (sums.empty()) return "";
  std::string text = ": held by ";
  for (size_t i = 0; i < std::min(sums.size(), kHoldersMax); ++i)
    text += (i ? ", " : "") + sums[i].first + " (" + number(sums[i].second, 3) + ")";
  if (sums.size() > kHoldersMax) text += " and " + std::to_string(sums.size() - kHoldersMax) + " more";
  return text;
}

// "8 vCPU, 32 GiB of memory and 1 GPU"; what is zero is left out.
std::string all_of(const domain::Share& share) {
  std::vector<std::string> parts;
  for (const Resource resource : kResources)
    if (amount(share, resource) > 0)
      parts.push_back(number(rounded_up(amount(share, resource)), 3) + " " + std::string(unit(resource)));
  std::string text;
  for (size_t i = 0; i < parts.size(); ++i)
    text += (i == 0 ? "" : i + 1 == parts.size() ? " and " : ", ") + parts[i];
  return text;
}

std::string machines_to_add(const std::vector<Ask>& unplaced) {
  std::string text = "add ";
  for (size_t i = 0; i < unplaced.size();) {
    const std::string size = all_of(unplaced[i].share);
    size_t count = 1;
    while (i + count < unplaced.size() && all_of(unplaced[i + count].share) == size) ++count;
    text += (i ? " and " : "") + std::to_string(count) + (count == 1 ? " machine" : " machines") +
            " with at least " + size + (count == 1 ? "" : " each");
    i += count;
  }
  return text;
}

// "ml.m5.4xlarge x 2 and ml.c5.xlarge"
std::string types(const std::vector<Ask>& asks) {
  std::string text;
  for (size_t i = 0; i < asks.size();) {
    size_t count = 1;
    while (i + count < asks.size() && asks[i + count].instance_type == asks[i].instance_type) ++count;
    text += (i ? " and " : "") + asks[i].instance_type + (count == 1 ? "" : " x " + std::to_string(count));
    i += count;
  }
  return text;
}

}  // namespace

double amount(const domain::Share& share, Resource resource) {
  switch (resource) {
    case Resource::cpus:
      return share.cpus;
    case Resource::memory:
      return double(share.memory_bytes) / kGib;
    case Resource::gpus:
      return double(share.gpus);
  }
  return 0;
}

std::string shortage_sentence(const std::vector<Shortage>& shortages, const std::vector<Held>& held) {
  std::string text;
  for (const Shortage& shortage : shortages)
    for (const Resource resource : kResources) {
      const double needs = amount(shortage.needs, resource), free = amount(shortage.free, resource);
      if (needs - free <= 1e-9) continue;
      text += (text.empty() ? "waits for " : "; and for ") + number(rounded_up(needs - free), 3) + " more " +
              std::string(unit(resource)) + " on machine " + shortage.machine->name + " (needs " +
              number(rounded_up(needs), 3) + ", " + number(rounded_down(std::max(0.0, free)), 3) + " free)" +
              holders(shortage.machine->name, resource, held);
    }
  return text;
}

std::string too_large_sentence(size_t placed, const std::vector<Ask>& unplaced,
                               const std::vector<Machine>& machines) {
  const std::string add = machines_to_add(unplaced);
  if (machines.empty()) return "there is no machine to run on: " + add;
  for (const Resource resource : kResources) {
    double largest = 0;
    for (const Machine& machine : machines) largest = std::max(largest, amount(machine.total, resource));
    const double needs = amount(unplaced.front().share, resource);
    if (needs > largest + 1e-9)
      return "needs " + number(rounded_up(needs), 3) + " " + std::string(unit(resource)) +
             " on one machine, the largest has " + number(rounded_down(largest), 3) + ": " + add;
  }
  if (placed == 0)
    return "needs " + all_of(unplaced.front().share) +
           " on one machine, and no machine has all of it: " + add;
  return "needs room for " + std::to_string(placed + unplaced.size()) +
         " hosts, and all machines together have room for " + std::to_string(placed) + " of them: " + add;
}

std::string limit_sentence(const Environment& environment, double needs_cpus, double used_cpus) {
  const std::string most = number(environment.cpus_max, 3);
  if (needs_cpus > environment.cpus_max)
    return "needs " + number(needs_cpus, 3) + " vCPU, and compute environment " + environment.name +
           " has at most " + most + ": raise its maxvCpus";
  return "waits for " + number(needs_cpus, 3) + " vCPU of compute environment " + environment.name + ": " +
         number(used_cpus, 3) + " of its " + most + " are used";
}

std::string turn_sentence(const std::string& first, const std::string& its_reason) {
  return "waits for its turn behind " + first + ", which " + its_reason;
}

std::string scaled_note(const Machine& machine, const std::vector<Ask>& asked,
                        const std::vector<domain::Share>& given) {
  domain::Share sum;
  for (const Ask& ask : asked) {
    sum.cpus += ask.share.cpus;
    sum.memory_bytes += ask.share.memory_bytes;
    sum.gpus += ask.share.gpus;
  }
  const bool scaled = given.front().cpus < asked.front().share.cpus ||
                      given.front().memory_bytes < asked.front().share.memory_bytes;
  std::string note;
  if (scaled) {
    const std::string part = given.size() == 1
                                 ? "the host gets the whole machine"
                                 : "each host gets 1/" + std::to_string(given.size()) + " of the machine";
    // Down, so that the parts never read as more than the machine.
    const auto gib = [](const domain::Share& share) {
      return number(std::floor(amount(share, Resource::memory) * 10) / 10, 1) + " GiB";
    };
    note = "this machine has " + number(machine.total.cpus, 3) + " vCPU and " + gib(machine.total) + "; " +
           types(asked) + " asks for " + number(sum.cpus, 3) + " vCPU and " + gib(sum) + ": " + part + ": " +
           number(rounded_down(given.front().cpus), 3) + " vCPU, " + gib(given.front());
  }
  int64_t given_gpus = 0;
  for (const domain::Share& share : given) given_gpus += share.gpus;
  if (given_gpus < sum.gpus) {
    if (!note.empty()) note += ". ";
    const std::string gpus = machine.total.gpus == 0 ? "no GPU"
                                                     : std::to_string(machine.total.gpus) +
                                                           (machine.total.gpus == 1 ? " GPU" : " GPUs");
    note += (note.empty() ? "this machine has " : "It has ") + gpus + "; " + types(asked) + " asks for " +
            std::to_string(sum.gpus) + ": " +
            (given_gpus == 0 ? std::string("it runs without")
                             : "it runs with " + std::to_string(given_gpus) + " over its hosts");
  }
  return note;
}

}  // namespace trainyard::schedule
