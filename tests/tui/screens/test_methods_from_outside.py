"""A method of another package in the app: in the list of steps, with a form, and in the plan."""

import installed_packages
import pytest

find_methods_again = installed_packages.find_methods_again
example_package = installed_packages.example_package


@pytest.mark.slow
async def test_a_method_of_another_package_has_its_place_and_its_form(example_package, sit, built_data):
    async with sit(built_data, "a", "slash", *"lone", tab="plan") as seat:
        assert "risk.lone_matches" in seat.text
        assert "Lone matches" in seat.text
        await seat.press("enter")
        assert "variables the intruder knows" in seat.text
        assert "known" in seat.text


@pytest.mark.slow
async def test_without_the_package_there_is_no_such_method(sit, built_data):
    async with sit(built_data, "a", "slash", *"lone", tab="plan") as seat:
        assert "lone_matches" not in seat.text
