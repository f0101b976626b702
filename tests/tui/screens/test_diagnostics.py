from workspace.workspace import Workspace


async def test_statistics_of_every_model(sit, directory, size):
    async with sit(directory, size=size, tab="diagnostics") as seat:
        assert "statistics of 1 model; none of them has a rule to meet" in seat.text
        assert "posterior_mean" in seat.text
        assert "income" in seat.text


async def test_broken_rules_come_first(sit, directory):
    workspace = Workspace.open(directory)
    with workspace.writing() as connection:
        for name, value, passed in (("r_hat", 1.0, True), ("r_hat", 1.2, False)):
            connection.execute(
                "INSERT INTO diagnostic (run_id, target, name, parameter, value, rule, passed) VALUES (1, 'visits', ?, 'tau', ?, 'at most 1.01', ?)",
                (name, value, passed),
            )
    workspace.close()
    async with sit(directory, tab="diagnostics") as seat:
        lines = seat.text.splitlines()
        assert "of 2 models; ✗ 1 of 2 rules broken" in lines[2]
        assert "✗ FAILED" in lines[4]
        assert "1.2" in lines[4]
        assert "at most 1.01" in lines[4]
        assert "✓ passed" in seat.text


async def test_a_run_that_has_fitted_nothing_says_so(sit, directory):
    async with sit(directory, "enter", "j", "enter", "5") as seat:
        assert "No model has been fitted in this run yet." in seat.text
