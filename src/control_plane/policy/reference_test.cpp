// Tests that evaluate() and the slow reference agree on random policies and requests from a seed.
#include "policy/testing/reference.hpp"

#include <gtest/gtest.h>

#include "base/random.hpp"
#include "policy/pattern.hpp"
#include "policy/simulate.hpp"

namespace trainyard::policy {
namespace {

constexpr int kRounds = 6'000;
constexpr int kPatternRounds = 30'000;

class Maker {
 public:
  explicit Maker(uint64_t seed) : random_(seed) {}

  // Makes a valid document. It uses few different names, so that names often match.
  Json document(PolicyKind kind) {
    Json statements = Json::array();
    for (uint64_t left = 1 + random_.below(3); left > 0; --left)
      statements.push_back(statement(kind));
    Json made{{"Statement", random_.chance(4) ? statements[0] : statements}};
    if (!random_.chance(5)) made["Version"] = random_.chance(6) ? "2008-10-17" : "2012-10-17";
    return made;
  }

  Request request() {
    Request made;
    made.account = "111122223333";
    switch (random_.below(6)) {
      case 0:
        made.principal_arn = "arn:aws:iam::111122223333:root";
        break;
      case 1:
      case 2:
        made.principal_arn = "arn:aws:iam::111122223333:user/" + pick({"ana", "ben"});
        break;
      case 3:
        made.account.clear(), made.service = "sagemaker.amazonaws.com";
        break;
      default:
        made.principal_arn = "arn:aws:sts::111122223333:assumed-role/train/" + pick({"s1", "s2"});
        made.role_arn = "arn:aws:iam::111122223333:role/train";
    }
    made.action = pick(
        {"s3:GetObject", "s3:PutObject", "sts:AssumeRole", "S3:getobject", "logs:PutLogEvents"});
    made.resource = pick({"*", "arn:aws:s3:::data/ana/x", "arn:aws:s3:::data/ben/x",
                          "arn:aws:s3:::data", "arn:aws:s3:::d\xc3\xa4ta/*"});
    for (const char* key : {"aws:username", "aws:PrincipalTag/Team", "s3:prefix", "aws:TagKeys"})
      if (!random_.chance(3)) made.values.set(key, several({"ana", "ben", "Ana", "a*", "red"}, 2));
    if (!random_.chance(3)) made.values.set("aws:SourceArn", arn(false));
    if (!random_.chance(3)) made.values.set("aws:SourceIp", address());
    if (!random_.chance(3)) made.values.set("aws:CurrentTime", date());
    if (!random_.chance(3))
      made.values.set("s3:max-keys", several({"1", "2", "10", "-3", "2.5"}, 2));
    if (!random_.chance(3)) made.values.set("aws:SecureTransport", pick({"true", "false", "TRUE"}));
    if (!random_.chance(3)) made.values.set("x:digest", pick({"ab", "cd"}));
    return made;
  }

  SeededRandom& random() { return random_; }
  std::string pick(const std::vector<std::string>& from) {
    return from[random_.below(from.size())];
  }

 private:
  Json one_or_more(const std::vector<std::string>& from) {
    const auto list = several(from, 3);
    return list.size() == 1 && random_.chance(2) ? Json(list[0]) : Json(list);
  }
  std::vector<std::string> several(const std::vector<std::string>& from, uint64_t most) {
    std::vector<std::string> list;
    for (uint64_t left = 1 + random_.below(most); left > 0; --left) list.push_back(pick(from));
    return list;
  }
  std::string date() {
    return pick({"2024-01-01T00:00:00Z", "2024-06-30T12:00:00Z", "2025-12-31T23:59:59Z"});
  }
  std::string address() {
    return pick(
        {"10.1.2.3", "10.9.0.1", "192.0.2.7", "2001:db8:0:0:0:0:0:1", "2001:db9:0:0:0:0:0:1"});
  }
  std::string arn(bool pattern) {
    if (!pattern)
      return pick({"arn:aws:sns:eu-west-1:111122223333:one",
                   "arn:aws:sns:eu-west-1:111122223333:one:two", "none"});
    return pick({"arn:aws:sns:*:*:one", "arn:aws:sns:*", "*",
                 "arn:aws:sns:eu-?est-1:111122223333:*", "arn:*:sns:*:*:o?e*",
                 "arn:aws:sns:eu-west-1:111122223333:${aws:username}"});
  }

  Json statement(PolicyKind kind) {
    const auto name = [&](const char* plain) {
      return (random_.chance(5) ? "Not" : "") + std::string(plain);
    };
    Json made{{"Effect", random_.chance(3) ? "Deny" : "Allow"}};
    made[name("Action")] =
        kind == PolicyKind::trust
            ? one_or_more({"sts:AssumeRole", "sts:*", "sts:TagSession", "STS:assumerole"})
            : one_or_more({"*", "s3:*", "s3:GetObject", "s3:?etObject", "s3:Put*", "sts:AssumeRole",
                           "logs:*s"});
    if (kind != PolicyKind::trust)
      made[name("Resource")] = one_or_more(
          {"*", "arn:aws:s3:::data/*", "arn:aws:s3:::data/${aws:username}/*", "arn:aws:s3:::d?ta*",
           "arn:aws:s3:::data", "arn:aws:s3:::data/${aws:PrincipalTag/Team, 'ben'}/x",
           "arn:aws:s3:::d?ta/${*}", "arn:aws:s3*"});
    if (kind != PolicyKind::identity)
      made[kind == PolicyKind::trust ? "Principal" : name("Principal")] = principal();
    Json conditions = Json::object();
    for (uint64_t left = random_.below(3); left > 0; --left) add_condition(conditions);
    if (!conditions.empty()) made["Condition"] = conditions;
    return made;
  }

  Json principal() {
    if (random_.chance(4)) return "*";
    Json made = Json::object();
    if (!random_.chance(4))
      made["AWS"] =
          one_or_more({"111122223333", "444455556666", "arn:aws:iam::111122223333:root",
                       "arn:aws:iam::111122223333:user/ana", "arn:aws:iam::111122223333:role/train",
                       "arn:aws:sts::111122223333:assumed-role/train/s1", "*"});
    if (made.empty() || random_.chance(3))
      made["Service"] = one_or_more({"sagemaker.amazonaws.com", "batch.amazonaws.com"});
    return made;
  }

  std::string decorated(const std::string& name) {
    return pick({"", "", "", "ForAnyValue:", "ForAllValues:"}) + name +
           (random_.chance(4) ? "IfExists" : "");
  }

  void add_condition(Json& conditions) {
    const std::vector<std::string> comparisons = {
        "Equals", "LessThan", "LessThanEquals", "GreaterThan", "GreaterThanEquals", "NotEquals"};
    switch (random_.below(9)) {
      case 0:
        conditions["Null"][pick({"aws:username", "S3:Prefix"})] = pick({"true", "false"});
        break;
      case 1:
        conditions[decorated("Numeric" + pick(comparisons))]["s3:max-keys"] =
            one_or_more({"1", "2", "10", "-3", "2.50"});
        break;
      case 2:
        conditions[decorated("Date" + pick(comparisons))]["aws:CurrentTime"] = date();
        break;
      case 3:
        conditions[decorated("Bool")]["aws:securetransport"] = pick({"true", "false"});
        break;
      case 4:
        conditions[decorated(pick({"IpAddress", "NotIpAddress"}))]["aws:SourceIp"] = one_or_more(
            {"10.0.0.0/8", "10.1.2.3", "10.8.0.0/13", "0.0.0.0/0", "2001:db8:0:0:0:0:0:0/32"});
        break;
      case 5:
        conditions[decorated(pick({"ArnEquals", "ArnLike", "ArnNotEquals", "ArnNotLike"}))]
                  ["aws:SourceArn"] = Json::array({arn(true), arn(true)});
        break;
      case 6:
        conditions[decorated("BinaryEquals")]["x:digest"] = to_base64(pick({"ab", "ef"}));
        break;
      default:
        conditions[decorated(pick({"StringEquals", "StringNotEquals", "StringEqualsIgnoreCase",
                                   "StringNotEqualsIgnoreCase", "StringLike", "StringNotLike"}))]
                  [pick({"aws:username", "aws:PrincipalTag/team", "s3:prefix", "aws:TagKeys"})] =
                      one_or_more({"ana", "a*", "?na", "${aws:username}",
                                   "${aws:PrincipalTag/Team}", "${s3:prefix, 'red'}", "A${*}",
                                   "*"});
    }
  }

  SeededRandom random_;
};

struct Made {
  std::vector<std::shared_ptr<const Policy>> owned;
  Policies policies;
};

const Policy* make_policy(Maker& maker, PolicyKind kind, Made& made) {
  auto parsed = parse_policy(maker.document(kind).dump(), kind);
  EXPECT_TRUE(parsed) << parsed.error().message;
  made.owned.push_back(*parsed);
  return made.owned.back().get();
}

Made make_policies(Maker& maker) {
  Made made;
  SeededRandom& random = maker.random();
  const auto fill = [&](std::vector<const Policy*>& list, PolicyKind kind, uint64_t most) {
    for (uint64_t left = random.below(most + 1); left > 0; --left)
      list.push_back(make_policy(maker, kind, made));
  };
  fill(made.policies.identity, PolicyKind::identity, 3);
  fill(made.policies.resource, random.chance(4) ? PolicyKind::trust : PolicyKind::resource, 1);
  if (random.chance(4)) fill(made.policies.session.emplace(), PolicyKind::identity, 2);
  if (random.chance(4)) made.policies.boundary = make_policy(maker, PolicyKind::identity, made);
  return made;
}

std::string describe(const Made& made, const Request& request) {
  std::string text =
      request.action + " " + request.resource + " by " + request.principal_arn + request.service;
  for (const auto& policy : made.owned) text += "\n" + policy->document();
  return text;
}

TEST(Reference, AgreesOnRandomPoliciesAndRequests) {
  size_t count[3] = {};
  for (uint64_t seed = 1; seed <= kRounds; ++seed) {
    Maker maker(seed);
    const Made made = make_policies(maker);
    for (int i = 0; i < 4; ++i) {
      const Request request = maker.request();
      const Verdict ours = evaluate(request, made.policies).verdict;
      ASSERT_EQ(ours, reference::evaluate(request, made.policies))
          << "seed " << seed << ": " << describe(made, request);
      ++count[size_t(ours)];
    }
  }
  // Each verdict is frequent, so the generator covers all rules.
  for (const size_t one : count) EXPECT_GT(one, size_t(kRounds) / 4);
}

TEST(Reference, SimulationAgreesWithTheDecision) {
  for (uint64_t seed = 1; seed <= kRounds / 4; ++seed) {
    Maker maker(seed);
    Made made;
    const NamedPolicy identity{"p", "user", make_policy(maker, PolicyKind::identity, made)};
    const Request request = maker.request();
    const Simulation simulation =
        simulate(request, {.identity = {identity}, .resource = {}, .boundary = {}});
    made.policies.identity = {identity.policy};
    ASSERT_EQ(simulation.decision.verdict, reference::evaluate(request, made.policies))
        << describe(made, request);
    ASSERT_EQ(simulation.matched.empty(), simulation.decision.verdict == Verdict::implicitly_denied)
        << describe(made, request);
  }
}

TEST(Reference, AgreesOnWildcards) {
  SeededRandom random(5);
  const std::vector<std::string> alphabet = {"a", "b", ":", "\xc3\xa4", "*", "?"};
  size_t matched = 0;
  for (int round = 0; round < kPatternRounds; ++round) {
    std::string pattern, text;
    for (uint64_t left = random.below(9); left > 0; --left) pattern += alphabet[random.below(6)];
    for (uint64_t left = random.below(12); left > 0; --left) text += alphabet[random.below(4)];
    const auto compiled = Pattern::compile(pattern, {});
    ASSERT_TRUE(compiled);
    const bool ours = *compiled->match(text, {});
    ASSERT_EQ(ours, reference::like(*reference::tokens(pattern, true, false, {}),
                                    reference::characters(text)))
        << pattern << " on " << text;
    matched += ours;
  }
  EXPECT_GT(matched, size_t(kPatternRounds) / 50);
}

// Tests parts between two stars that are longer than one machine word.
TEST(Reference, AgreesOnLongParts) {
  SeededRandom random(6);
  for (int round = 0; round < 300; ++round) {
    std::string text, pattern = "*";
    for (int i = 0; i < 400; ++i) text += random.chance(6) ? 'b' : 'a';
    const size_t at = random.below(200), length = 60 + random.below(140);
    pattern += text.substr(at, length) + "*";
    for (int i = 0; i < 20; ++i) pattern[1 + random.below(length)] = '?';
    if (random.chance(2)) pattern[1 + random.below(length)] = 'b';
    ASSERT_EQ(
        *Pattern::compile(pattern, {})->match(text, {}),
        reference::like(*reference::tokens(pattern, true, false, {}), reference::characters(text)))
        << pattern << " on " << text;
  }
}

}  // namespace
}  // namespace trainyard::policy
