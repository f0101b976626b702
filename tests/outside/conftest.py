"""Packages of methods outside the house, installed for one test."""

import installed_packages

find_methods_again = installed_packages.find_methods_again
example_package = installed_packages.example_package
