"""docs/notebook.ipynb, executed against a real server. DPAR_WRITE_NOTEBOOK=1 keeps its output in the repository."""
import importlib.util
import os
import pathlib
import unittest

from support import ServerTest, main

NOTEBOOK = pathlib.Path(os.environ["DPAR_SOURCE_DIR"]) / "docs" / "notebook.ipynb"
WRITE = "DPAR_WRITE_NOTEBOOK" in os.environ
MISSING = [name for name in ("nbclient", "nbformat", "ipykernel", "matplotlib") if not importlib.util.find_spec(name)]


def texts(cell: dict) -> str:
    return "".join(
        output.get("text", "") or str(output.get("data", {}).get("text/plain", "")) for output in cell["outputs"]
    )


@unittest.skipIf(MISSING, f"missing: {', '.join(MISSING)}")
class NotebookTest(ServerTest):
    def test_it_runs_and_shows_what_it_promises(self) -> None:
        import nbclient
        import nbformat

        notebook = nbformat.read(NOTEBOOK, as_version=4)
        code = [cell for cell in notebook.cells if cell.cell_type == "code"]
        lines = [line for cell in code for line in cell.source.split("\n") if line.strip()]
        self.assertLess(len(lines), 40)
        os.environ |= {"DPAR_SERVER": self.server.address, "DPAR_CA": self.server.ca, "DPAR_TOKEN": self.token}
        nbclient.NotebookClient(
            notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(self.place)}}
        ).execute()
        self.assertTrue(any("image/png" in output.get("data", {}) for output in code[3]["outputs"]), "there is no plot")
        self.assertIn("ok      model.onnx digest", texts(code[2]))
        self.assertNotIn("FAILED", texts(code[2]))
        self.assertIn("PrivacyBudgetExhausted", texts(code[4]))
        self.assertFalse(
            any(
                output.output_type == "error" or output.get("name") == "stderr"
                for cell in code
                for output in cell["outputs"]
            )
        )
        self.assertGreater(len(list((self.place / "models").iterdir())), 3)
        if WRITE:
            for cell in code:
                cell.metadata.pop("execution", None)  # when it ran
            nbformat.write(notebook, NOTEBOOK)

    def test_its_output_is_kept(self) -> None:
        import nbformat

        notebook = nbformat.read(NOTEBOOK, as_version=4)
        for cell in notebook.cells:
            self.assertTrue(cell.cell_type != "code" or cell.outputs, cell.source)


if __name__ == "__main__":
    main()
