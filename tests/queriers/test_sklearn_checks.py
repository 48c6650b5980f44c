"""scikit-learn's own checks of an estimator."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from sklearn_asal import AmortizedQuerier, AmortizedSafeQuerier
from sklearn_asal.policies.registry import find

from ..common import BestSafeQuerier, UniformQuerier, policy_file

# Their data are in no unit cube, and safe is not what they are about.
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


class AnySize(AmortizedQuerier):
    """Has a policy for every number of features, and is the real one otherwise."""

    def _load(self, n_features):
        return find(policy_file(self._safe, n_features), n_features, self._safe)


class AnySizeSafe(AmortizedSafeQuerier):
    """Has a policy for every number of features, and is the real one otherwise."""

    _load = AnySize._load


@parametrize_with_checks(
    [
        UniformQuerier(),
        BestSafeQuerier(),
        AmortizedQuerier(),
        AmortizedSafeQuerier(),
        AnySize(),
        AnySizeSafe(),
    ]
)
def test_every_check_passes(estimator, check):
    check(estimator)


# These fit data with another number of features than two, which such a querier has to refuse.
# They are among those that pass above.
OTHER_NUMBER_OF_FEATURES = [
    "check_dict_unchanged",
    "check_dont_overwrite_parameters",
    "check_dtype_object",
    "check_estimators_dtypes",
    "check_estimators_nan_inf",
    "check_estimators_pickle",
    "check_f_contiguous_array_estimator",
    "check_fit2d_1feature",
    "check_fit2d_1sample",
    "check_fit2d_predict1d",
    "check_fit_score_takes_y",
    "check_methods_sample_order_invariance",
    "check_methods_subset_invariance",
    "check_n_features_in_after_fitting",
    "check_pipeline_consistency",
    "check_positive_only_tag_during_fit",
]


def expected_failures(estimator):
    reason = "the policy has two features, the check's data have not"
    return dict.fromkeys(OTHER_NUMBER_OF_FEATURES, reason)


@parametrize_with_checks(
    [AmortizedQuerier(policy_file(False)), AmortizedSafeQuerier(policy_file(True))],
    expected_failed_checks=expected_failures,
)
def test_checks_with_a_policy_for_two_features(estimator, check):
    check(estimator)
