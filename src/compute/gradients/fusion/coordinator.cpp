#include "gradients/fusion/coordinator.hpp"

#include <algorithm>
#include <functional>
#include <numeric>

namespace trainyard::gradients {
namespace {

std::string listed(const std::vector<int>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (size_t i = 0; i < ranks.size(); ++i)
    text.append(i == 0                  ? ""
                : i + 1 == ranks.size() ? " and "
                                        : ", ")
        .append(std::to_string(ranks[i]));
  return text;
}

std::string listed(std::span<const uint64_t> numbers) {
  std::string text = "[";
  for (size_t i = 0; i < numbers.size(); ++i)
    text.append(i == 0 ? "" : ", ").append(std::to_string(numbers[i]));
  return text + "]";
}

// The fields in which requests of one name may differ, as they are named in errors.
struct Field {
  std::string_view name;
  std::string (*value)(const Signature& signature);
};
constexpr Field kFields[] = {
    {"operation", [](const Signature& s) { return std::string(to_string(s.operation)); }},
    {"type", [](const Signature& s) { return std::string(collectives::to_string(s.type)); }},
    {"shape",
     [](const Signature& s) {
       const bool by_rows =
           s.operation == Operation::all_gather || s.operation == Operation::all_to_all;
       if (!by_rows || s.shape.empty()) return listed(s.shape);
       return "[*" +
              (s.shape.size() == 1 ? "]" : ", " + listed(std::span(s.shape).subspan(1)).substr(1));
     }},
    {"reduction",
     [](const Signature& s) { return std::string(collectives::to_string(s.reduction)); }},
    {"prescale", [](const Signature& s) { return std::to_string(s.prescale); }},
    {"postscale", [](const Signature& s) { return std::to_string(s.postscale); }},
    {"root", [](const Signature& s) { return std::to_string(s.root); }},
    {"compression", [](const Signature& s) { return to_string(s.compression); }},
    {"group", [](const Signature& s) { return s.group.empty() ? "none" : "'" + s.group + "'"; }},
    {"group's size", [](const Signature& s) { return std::to_string(s.group_members); }},
    {"ranks",
     [](const Signature& s) {
       return s.operation == Operation::add_set ? listed(s.splits) : std::string();
     }},
};

// Checks the numbers of rows that go to each member of the process set.
Result<void> check_splits(const Signature& signature, size_t members) {
  if (signature.splits.size() != members)
    return invalid("invalid splits: the process set has " + std::to_string(members) +
                   " members, and the tensor " + std::to_string(signature.splits.size()) +
                   " splits");
  // Compares one by one, so that no sum overflows.
  for (uint64_t rest = signature.rows(); const uint64_t split : signature.splits) {
    if (split > rest)
      return invalid("invalid splits: their sum exceeds the " + std::to_string(signature.rows()) +
                     " rows of the tensor");
    rest -= split;
    if (&split == &signature.splits.back() && rest > 0)
      return invalid("invalid splits: their sum is below the " + std::to_string(signature.rows()) +
                     " rows of the tensor");
  }
  return ok();
}

Result<void> check_reduction(const Signature& signature) {
  if (!collectives::exists(signature.type, signature.reduction)) {
    return invalid(
        "unsupported reduction: " + std::string(collectives::to_string(signature.reduction)) +
        " of " + std::string(collectives::to_string(signature.type)));
  }
  if (signature.compression.kind != Compression::Kind::none &&
      signature.type != collectives::Type::f32)
    return invalid("compression supports only tensors of type f32, but the tensor has type " +
                   std::string(collectives::to_string(signature.type)));
  if (signature.compression.kind != Compression::Kind::none &&
      (signature.operation != Operation::allreduce ||
       (signature.reduction != collectives::Reduction::sum &&
        signature.reduction != collectives::Reduction::average)))
    return invalid("compression supports only sums and averages");
  if (signature.compression.kind == Compression::Kind::low_rank &&
      (signature.compression.rank == 0 || signature.compression.rank > Compression::kRankMax))
    return invalid("invalid rank of low-rank compression: use 1 to " +
                   std::to_string(Compression::kRankMax));
  return ok();
}

// Adds a key to the answer's forgotten keys, if it is not there yet.
void forget(Answer& answer, const std::string& key) {
  if (std::find(answer.forgotten.begin(), answer.forgotten.end(), key) == answer.forgotten.end())
    answer.forgotten.push_back(key);
}

}  // namespace

Result<void> check(const Signature& signature, const Sets& sets, int rank) {
  const auto set = sets.find(signature.set);
  if (set == sets.end()) return invalid("unknown process set " + std::to_string(signature.set));
  const auto& members = set->second;
  const auto is_member = [&](int each) {
    return std::binary_search(members.begin(), members.end(), each);
  };
  if (!is_member(rank)) {
    return invalid("rank " + std::to_string(rank) + " does not belong to process set " +
                   std::to_string(signature.set));
  }
  if (signature.group.empty() != (signature.group_members == 0))
    return invalid("a grouped tensor needs both a group name and a number of members");
  switch (signature.operation) {
    case Operation::broadcast:
      if (!is_member(signature.root))
        return invalid("the root, rank " + std::to_string(signature.root) +
                       ", does not belong to process set " + std::to_string(signature.set));
      return ok();
    case Operation::all_to_all:
      return check_splits(signature, members.size());
    case Operation::allreduce:
    case Operation::reduce_scatter:
      return check_reduction(signature);
    case Operation::adasum:
      if (signature.type > collectives::Type::bf16)
        return invalid("unsupported type for adasum: " +
                       std::string(collectives::to_string(signature.type)));
      return ok();
    case Operation::add_set: {
      const auto& ranks = signature.splits;
      const bool ascending =
          std::adjacent_find(ranks.begin(), ranks.end(), std::greater_equal<>()) == ranks.end();
      if (ranks.empty() || !ascending || ranks.back() >= sets.at(0).size())
        return invalid(
            "invalid process set: name at least one rank, each once, in ascending order");
      return ok();
    }
    case Operation::remove_set:
      if (signature.root == 0 || !sets.contains(signature.root))
        return invalid("process set " + std::to_string(signature.root) +
                       " does not exist or cannot be removed");
      return ok();
    default:
      return ok();
  }
}

bool allows_joined_ranks(const Signature& signature) {
  switch (signature.operation) {
    case Operation::allreduce:
      return signature.reduction == collectives::Reduction::sum ||
             signature.reduction == collectives::Reduction::average;
    case Operation::adasum:  // adding zeros changes nothing
    case Operation::barrier:
      return true;
    default:
      return false;
  }
}

std::vector<int> Coordinator::missing(const Row& row, const std::vector<int>& members) const {
  const auto joined = joined_.find(row.requests.begin()->second.set);
  std::vector<int> ranks;
  for (const int member : members) {
    if (row.requests.contains(member)) continue;
    if (joined == joined_.end() || !joined->second.ranks.contains(member)) ranks.push_back(member);
  }
  return ranks;
}

bool Coordinator::complete(const Row& row, const Sets& sets) const {
  return missing(row, sets.at(row.requests.begin()->second.set)).empty();
}

std::string Coordinator::difference(const Row& row) const {
  std::string text;
  for (const Field& field : kFields) {
    std::map<std::string, std::vector<int>> ranks_by_value;
    for (const auto& [rank, signature] : row.requests)
      ranks_by_value[field.value(signature)].push_back(rank);
    if (ranks_by_value.size() == 1) continue;
    text.append(text.empty() ? "" : "; ").append(field.name).append(" is ");
    bool first = true;
    for (const auto& [value, ranks] : ranks_by_value) {
      text.append(first ? "" : ", ").append(value).append(" on ").append(listed(ranks));
      first = false;
    }
    if (field.name == "operation") break;  // other fields then differ in meaning
  }
  return text;
}

Agreement Coordinator::agreed(const Row& row, const std::vector<int>& members) const {
  Agreement agreement;
  agreement.signature = row.requests.begin()->second;
  for (const auto& [rank, signature] : row.requests)
    agreement.signature.priority = std::max(agreement.signature.priority, signature.priority);
  if (auto differs = difference(row); !differs.empty()) {
    agreement.fault = "the ranks do not agree: " + differs;
    return agreement;
  }
  const auto joined = joined_.find(agreement.signature.set);
  const bool any_joined = joined != joined_.end();
  if (any_joined && !allows_joined_ranks(agreement.signature)) {
    agreement.fault = "not possible while rank " + std::to_string(*joined->second.ranks.begin()) +
                      " has joined: only sums, averages and barriers are";
    return agreement;
  }
  const Operation operation = agreement.signature.operation;
  for (const int member : members) {
    const auto request = row.requests.find(member);
    if (operation == Operation::all_gather) {
      agreement.rows.push_back(request->second.rows());
    } else if (operation == Operation::all_to_all) {
      agreement.rows.insert(agreement.rows.end(), request->second.splits.begin(),
                            request->second.splits.end());
    }
  }
  agreement.keep = !any_joined && operation < Operation::join;
  return agreement;
}

void Coordinator::fail(const std::string& key, std::string fault, Answer& answer) {
  Agreement& agreement = answer.ready.emplace_back();
  agreement.signature = rows_.at(key).requests.begin()->second;
  agreement.fault = std::move(fault);
  rows_.erase(key);
}

// A rank requests all tensors of a group at once. So when one of them is complete, every rank has
// requested all that it knows, and a tensor that is not complete now never will be.
void Coordinator::settle_group(const Row& row, const Sets& sets, Answer& answer) {
  const Signature first = row.requests.begin()->second;
  const auto& members = sets.at(first.set);
  std::vector<std::pair<uint64_t, std::string>> keys;
  std::string fault;
  for (const auto& [key, other] : rows_) {
    const bool belongs =
        std::any_of(other.requests.begin(), other.requests.end(), [&](const auto& request) {
          return request.second.set == first.set && request.second.group == first.group;
        });
    if (!belongs) continue;
    keys.emplace_back(other.order, key);
    if (!fault.empty()) continue;
    const auto absent = missing(other, members);
    const std::string& name = other.requests.begin()->second.name;
    if (!absent.empty()) {
      fault = listed(absent) + (absent.size() == 1 ? " has" : " have") + " no " + name + " in it";
    } else if (auto agreement = agreed(other, members); !agreement.fault.empty()) {
      fault = name + ": " + agreement.fault;
    }
  }
  std::sort(keys.begin(), keys.end());
  for (const auto& [order, key] : keys) {
    if (!fault.empty()) {
      fail(key, "group '" + first.group + "': " + fault, answer);
    } else {
      answer.ready.push_back(agreed(rows_.at(key), members));
      rows_.erase(key);
    }
  }
}

void Coordinator::settle(const Sets& sets, Answer& answer) {
  std::vector<std::pair<uint64_t, std::string>> complete_rows;
  for (const auto& [key, row] : rows_) {
    if (complete(row, sets)) complete_rows.emplace_back(row.order, key);
  }
  std::sort(complete_rows.begin(), complete_rows.end());
  for (const auto& [order, key] : complete_rows) {
    const auto found = rows_.find(key);
    if (found == rows_.end()) continue;  // removed with its group
    const Signature& signature = found->second.requests.begin()->second;
    if (!signature.group.empty()) {
      settle_group(found->second, sets, answer);
    } else {
      answer.ready.push_back(agreed(found->second, sets.at(signature.set)));
      rows_.erase(key);
    }
  }
}

void Coordinator::check_for_stalls(std::span<const Report> reports, const Sets& sets,
                                   Answer& answer) {
  struct Seen {
    std::vector<int> ranks;
    uint64_t milliseconds = 0;
  };
  std::map<std::string, Seen> seen;
  for (size_t rank = 0; rank < reports.size(); ++rank) {
    for (const PendingTensor& waiting : reports[rank].waiting) {
      Seen& each = seen[waiting.key];
      each.ranks.push_back(int(rank));
      each.milliseconds = std::max(each.milliseconds, waiting.milliseconds);
    }
  }
  for (const auto& entry : seen) {
    const std::string& key = entry.first;
    const Seen& each = entry.second;
    const auto settled =
        std::any_of(answer.ready.begin(), answer.ready.end(),
                    [&](const Agreement& ready) { return key_of(ready.signature) == key; });
    const size_t slash = key.find('/');
    const auto set = sets.find(std::atoi(key.c_str()));
    if (settled || set == sets.end() || slash == std::string::npos) continue;
    const auto joined = joined_.find(set->first);
    std::vector<int> absent;
    for (const int member : set->second) {
      const bool has_joined = joined != joined_.end() && joined->second.ranks.contains(member);
      if (!has_joined && !std::binary_search(each.ranks.begin(), each.ranks.end(), member))
        absent.push_back(member);
    }
    const bool fails = limits_.stall_fail_after > 0ms &&
                       each.milliseconds >= uint64_t(limits_.stall_fail_after.count());
    const bool reported = limits_.stall_report_after > 0ms &&
                          each.milliseconds >= uint64_t(limits_.stall_report_after.count());
    if (!fails && !reported) continue;
    const std::string reason = std::string(absent.empty() ? "waits for the rest of its group"
                                                          : "waits for " + listed(absent)) +
                               " since " + std::to_string(each.milliseconds / 1000) + " s";
    answer.stalls.append(answer.stalls.empty() ? "" : "\n")
        .append(key.substr(slash + 1) + " " + reason + "; " + listed(each.ranks) + " submitted it");
    if (!fails) continue;
    Agreement& agreement = answer.ready.emplace_back();
    agreement.signature.name = key.substr(slash + 1);
    agreement.signature.set = set->first;
    agreement.fault = reason;
    agreement.late = true;
    rows_.erase(key);
  }
}

Result<void> Coordinator::add_request(const Signature& request, int rank, const Sets& sets,
                                      const ResponseCache& cache, Answer& answer) {
  const auto checked = check(request, sets, rank);
  const std::string key = key_of(request);
  if (!checked || (rows_.contains(key) && rows_.at(key).requests.contains(rank))) {
    return corrupt("rank " + std::to_string(rank) + " sent an invalid request, " +
                   name_of(request) + (checked ? ", twice" : ": " + checked.error().message));
  }
  if (request.operation == Operation::join) {
    Joined& joined = joined_[request.set];
    joined.ranks.insert(rank);
    joined.last = rank;
    for (size_t position = 0; position < cache.positions(); ++position) {
      const auto* entry = cache.at(position);
      if (entry && entry->agreement.signature.set == request.set &&
          !allows_joined_ranks(entry->agreement.signature))
        forget(answer, key_of(entry->agreement.signature));
    }
    return ok();
  }
  if (cache.find(key)) forget(answer, key);
  const auto [row, is_new] = rows_.try_emplace(key);
  if (is_new) row->second.order = orders_++;
  row->second.requests.emplace(rank, request);
  return ok();
}

// Completes the join of each set whose members have all joined.
void Coordinator::finish_joins(const Sets& sets, Answer& answer) {
  for (auto joined = joined_.begin(); joined != joined_.end();) {
    const auto set = sets.find(joined->first);
    if (set != sets.end() && joined->second.ranks.size() == set->second.size()) {
      Agreement& agreement = answer.ready.emplace_back();
      agreement.signature.name = "join";
      agreement.signature.operation = Operation::join;
      agreement.signature.set = joined->first;
      agreement.last = joined->second.last;
      joined = joined_.erase(joined);
    } else {
      ++joined;
    }
  }
}

Result<Answer> Coordinator::answer(std::span<const Report> reports, const Sets& sets,
                                   const ResponseCache& cache) {
  Answer answer;
  for (int rank = 0; rank < ranks_; ++rank) {
    const Report& report = reports[size_t(rank)];
    if (report.leaving) answer.leaving.push_back(uint32_t(rank));
    for (const Signature& request : report.requests)
      TRY(add_request(request, rank, sets, cache, answer));
  }
  settle(sets, answer);
  finish_joins(sets, answer);
  check_for_stalls(reports, sets, answer);
  // Removes requests of a set that is removed. The ranks fail their requests when they receive this
  // answer.
  for (const Agreement& ready : answer.ready) {
    if (ready.signature.operation != Operation::remove_set || !ready.fault.empty()) continue;
    joined_.erase(ready.signature.root);
    std::erase_if(rows_, [&](const auto& row) {
      return row.second.requests.begin()->second.set == ready.signature.root;
    });
  }
  return answer;
}

}  // namespace trainyard::gradients
