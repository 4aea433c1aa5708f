#include "launch/slurm/job_comment.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "domain/limits.hpp"
#include "launch/slurm/components.hpp"
#include "networks/network.hpp"

namespace trainyard::launch {
namespace {

constexpr std::string_view kFamily = "trainyard/";
constexpr std::string_view kCommentVersion = "trainyard/1";
constexpr int64_t kHostsMax = domain::kGangHostsMax;

Result<int64_t> natural(std::string_view text, int64_t max) {
  const auto number = parse_int(text);
  if (!number || *number < 0 || *number > max)
    return corrupt("unexpected number '" + shorten(to_utf8(text), 40) +
                   "' in the comment of a Slurm job");
  return *number;
}

// Reads "0:137,1:1".
Result<void> read_ended(std::string_view text, JobComment& comment) {
  for (const auto each : split(text, ',')) {
    const size_t colon = each.find(':');
    if (colon == std::string_view::npos)
      return corrupt("unexpected entry '" + shorten(to_utf8(each), 40) +
                     "' of `ended` in the comment of a Slurm job: it must be HOST:CODE");
    const int64_t host = TRY(natural(each.substr(0, colon), kHostsMax - 1));
    comment.ended[domain::HostIndex(host)] = int(TRY(natural(each.substr(colon + 1), 255)));
  }
  return {};
}

// Returns whether IAM allows the name for a user or role. The comment leaves out other names.
bool is_principal_name(std::string_view text) {
  constexpr size_t kNameBytesMax = 64;
  return !text.empty() && text.size() <= kNameBytesMax && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("_+=,.@-").find(c) != std::string_view::npos;
  });
}

// Reads "8,2": one number for each component.
Result<void> read_amounts(std::string_view text, int64_t NodeAmounts::*amount,
                          JobComment& comment) {
  constexpr int64_t kAmountMax = int64_t{1} << 40;
  const auto numbers = split(text, ',');
  if (numbers.size() > kSlurmComponentsMax)
    return corrupt("the comment of a Slurm job has amounts for " + std::to_string(numbers.size()) +
                   " components, at most " + std::to_string(kSlurmComponentsMax) + " are allowed");
  comment.amounts.resize(std::max(comment.amounts.size(), numbers.size()));
  for (size_t i = 0; i < numbers.size(); ++i)
    comment.amounts[i].*amount = TRY(natural(numbers[i], kAmountMax));
  return {};
}

std::string amounts_text(const JobComment& comment, int64_t NodeAmounts::*amount) {
  std::string text;
  for (const NodeAmounts& each : comment.amounts)
    text += (text.empty() ? "" : ",") + std::to_string(each.*amount);
  return text.empty() ? "0" : text;
}

Result<void> read_member(std::string_view member, JobComment& comment) {
  const size_t equals = member.find('=');
  if (equals == std::string_view::npos) return {};
  const auto key = member.substr(0, equals), value = member.substr(equals + 1);
  if (key == "hosts") comment.hosts = uint32_t(TRY(natural(value, kHostsMax)));
  if (key == "net") comment.subnet = TRY(networks::parse_subnet(value));
  if (key == "cpus") return read_amounts(value, &NodeAmounts::cpus, comment);
  if (key == "mem") return read_amounts(value, &NodeAmounts::memory_mib, comment);
  if (key == "gpus") return read_amounts(value, &NodeAmounts::gpus, comment);
  if (key == "reuse") comment.kind = value;
  if (key == "by") comment.submitter = value;
  if (key == "seal") comment.seal = value;
  if (key == "ended") return read_ended(value, comment);
  return {};
}

// Formats what was known when the job was submitted, except for the token.
std::string before_seal(const JobComment& comment) {
  return std::string(kCommentVersion) + " " + comment.mark + " " + comment.attempt.text() +
         " hosts=" + std::to_string(comment.hosts) + " net=" + comment.subnet.text() +
         " cpus=" + amounts_text(comment, &NodeAmounts::cpus) +
         " mem=" + amounts_text(comment, &NodeAmounts::memory_mib) +
         " gpus=" + amounts_text(comment, &NodeAmounts::gpus) +
         (comment.kind.empty() ? "" : " reuse=" + comment.kind) +
         (is_principal_name(comment.submitter) ? " by=" + comment.submitter : "");
}

}  // namespace

bool is_job_comment(std::string_view comment) { return comment.starts_with(kFamily); }

std::string submitter_in_comment(std::string_view submitter) {
  return is_principal_name(submitter) ? std::string(submitter) : "";
}

std::string seal_context(const JobComment& comment, std::string_view user) {
  if (user.empty()) return comment.attempt.text();
  return before_seal(comment) + " as=" + std::string(user);
}

std::string to_text(const JobComment& comment) {
  return before_seal(comment) + " seal=" + comment.seal;
}

Result<JobComment> read_job_comment(std::string_view text) {
  JobComment comment;
  if (const size_t why = text.find(" why="); why != std::string_view::npos) {
    comment.why = trim(text.substr(why + 5));
    text = text.substr(0, why);
  }
  const auto words = split(trim(text), ' ');
  if (words.size() < 3 || words[0] != kCommentVersion)
    return corrupt("unexpected comment of a Slurm job: '" + shorten(to_utf8(text), 80) + "'");
  comment.mark = words[1];
  const auto attempt = domain::parse_attempt_id(words[2]);
  if (!attempt)
    return corrupt("the comment of a Slurm job has an invalid attempt: '" +
                   shorten(to_utf8(words[2]), 80) + "'");
  comment.attempt = *attempt;
  for (size_t i = 3; i < words.size(); ++i) TRY(read_member(words[i], comment));
  if (comment.hosts == 0) return corrupt("the comment of a Slurm job has no hosts");
  return comment;
}

}  // namespace trainyard::launch
